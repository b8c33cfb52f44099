"""Recordings: a node written down look by look, and read back."""
