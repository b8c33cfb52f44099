"""Record a node, read a recording back, and simulate decisions on it."""
