"""The agent over HTTP: metrics, snapshots, and the few things that act."""
