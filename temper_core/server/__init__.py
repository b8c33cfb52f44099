"""The agent's HTTP interface: metrics, snapshots, and a few endpoints that act."""
