"""Conditions on the version of a program."""

import re

CONDITION = re.compile(r"(>=|<|==) ?(\d{1,9}(?:\.\d{1,9}){0,3})", re.ASCII)
CONDITION_PATTERN = r"^(>=|<|==) ?[0-9]{1,9}(\.[0-9]{1,9}){0,3}$"
"""The same, for JSON Schema."""


def require_condition(text: str) -> None:
    """Raise ValueError, with the allowed forms, unless *text* is a condition on a version."""
    if CONDITION.fullmatch(text) is None:
        raise ValueError(f"must be >=, < or == and a version, such as '>=8.0', not {text!r}")
