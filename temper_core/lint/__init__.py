"""Checks of snapshots by invariants. Violations begin and end over several windows."""
