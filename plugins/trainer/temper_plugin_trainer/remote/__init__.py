"""Training through the API server: the trials are on a node, the benchmark is here."""
