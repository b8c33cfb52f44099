"""The format of the names and summaries of records."""

from attrs.validators import and_, instance_of, matches_re, max_len

NAME_PATTERN = r"[a-z][a-z0-9-]{0,62}"
NAME = matches_re(NAME_PATTERN)
"""A validator for attrs fields: a name that is also valid as a file name."""
SUMMARY = and_(instance_of(str), max_len(1000))
"""A validator for attrs fields: a text in lists that hold one of every record."""
