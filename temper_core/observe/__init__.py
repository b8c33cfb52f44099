"""Observation of the node: one ``Snapshot`` per tick from /proc, cgroups, PSI and the engine."""
