"""Judge snapshots by invariants; violations begin and end over windows."""
