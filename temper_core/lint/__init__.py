"""Judge snapshots by invariants. Violations begin and end over windows."""
