"""``temper power``: its commands, and the files that they read."""
