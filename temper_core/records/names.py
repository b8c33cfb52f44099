"""What names of records look like."""

from attrs.validators import matches_re

NAME = matches_re(r"[a-z][a-z0-9-]{0,62}")
"""For attrs fields: a name that an operator can say, and a file can have."""
