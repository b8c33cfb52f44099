"""The room of ``temper train run``: measures variants of a profile, and keeps improvements."""
