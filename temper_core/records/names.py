"""What names of records look like."""

from attrs.validators import matches_re

NAME_PATTERN = r"[a-z][a-z0-9-]{0,62}"
NAME = matches_re(NAME_PATTERN)
"""For attrs fields: a name that an operator can say, and a file can have."""
