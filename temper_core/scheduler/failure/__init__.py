"""The end of an engine: its diagnosis, and the time until the next start."""
