"""The format of the names and summaries of records."""

import re

from attrs import Attribute, frozen


@frozen
class NameFormat:
    """A validator for attrs fields: a text that matches *pattern*, as *words* describe it."""

    pattern: str
    words: str

    def __call__(self, record: object, attribute: "Attribute[str]", value: object) -> None:
        """Raise TypeError or ValueError with the record, its field and the value."""
        where = f"{type(record).__name__}.{attribute.name}"
        if not isinstance(value, str):
            raise TypeError(f"{where} must be a text, not {type(value).__name__}")
        if not re.fullmatch(self.pattern, value):
            raise ValueError(f"{where} must be {self.words}, not {value!r:.80}")


NAME_PATTERN = r"[a-z][a-z0-9-]{0,62}"
NAME = NameFormat(NAME_PATTERN, "lower-case letters, digits and '-', at most 63, a letter first")
"""A name that is also valid as a file name."""
SNAKE_NAME = NameFormat(
    r"[a-z][a-z0-9_]{0,62}", "lower-case letters, digits and '_', at most 63, a letter first"
)
"""A name that is also valid in the name of a metric."""
LONGEST_SUMMARY = 1000
"""Characters. Summaries are in lists that hold one of every record."""


def is_summary(_: object, attribute: "Attribute[str]", value: object) -> None:
    """Validate an attrs field: a text of at most ``LONGEST_SUMMARY`` characters."""
    if not isinstance(value, str):
        raise TypeError(f"{attribute.name} must be a text, not {type(value).__name__}")
    if len(value) > LONGEST_SUMMARY:
        raise ValueError(f"{attribute.name} has more than {LONGEST_SUMMARY} characters")
