"""The format of record names."""

from attrs.validators import matches_re

NAME_PATTERN = r"[a-z][a-z0-9-]{0,62}"
NAME = matches_re(NAME_PATTERN)
"""A validator for attrs fields: a name that is also valid as a file name."""
