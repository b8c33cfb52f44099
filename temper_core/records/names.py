"""The format of the names and summaries of records."""

from attrs import Attribute
from attrs.validators import matches_re

NAME_PATTERN = r"[a-z][a-z0-9-]{0,62}"
NAME = matches_re(NAME_PATTERN)
"""A validator for attrs fields: a name that is also valid as a file name."""
LONGEST_SUMMARY = 1000
"""Characters. Summaries are in lists that hold one of every record."""


def is_summary(_: object, attribute: "Attribute[str]", value: object) -> None:
    """Validate an attrs field: a text of at most ``LONGEST_SUMMARY`` characters."""
    if not isinstance(value, str):
        raise TypeError(f"{attribute.name} must be a text, not {type(value).__name__}")
    if len(value) > LONGEST_SUMMARY:
        raise ValueError(f"{attribute.name} has more than {LONGEST_SUMMARY} characters")
