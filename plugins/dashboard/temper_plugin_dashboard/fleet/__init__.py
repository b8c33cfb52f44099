"""The page of a cluster: a server that asks the agents of all nodes."""
