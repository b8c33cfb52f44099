"""How long a test waits for what has to happen."""

PATIENCE_S = 60.0
"""A failure, never a measure: on a busy machine a process may start late and answer late."""
