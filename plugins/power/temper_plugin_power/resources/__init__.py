"""The kinds of objects that power-aware placement adds to a cluster."""
