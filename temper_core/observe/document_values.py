"""Numbers and names as the JSON of ``/observe`` has them."""

DIGITS = 6
"""Decimal places of numbers."""


def count(counted: int) -> int | None:
    """Return a count, None if it is negative, which means unknown."""
    return None if counted < 0 else counted


def name_or_none(name: object) -> str | None:
    """Return a tier's name, None without one."""
    return None if name is None else str(name)


def rounded_or_none(number: float | None) -> float | None:
    """Round *number* to ``DIGITS`` unless it is None."""
    return None if number is None else rounded(number)


def rounded(number: float) -> float:
    """Round *number* to ``DIGITS``."""
    return round(number, DIGITS)
