"""Arithmetic that the parts share."""

from decimal import ROUND_HALF_UP, Decimal


def half_away(value: float) -> int:
    """Return *value* rounded, halves away from zero, as ``math.Round`` of Go does."""
    return int(Decimal(value).to_integral_value(ROUND_HALF_UP))


def clamped(value: float, least: float = 0.0, most: float = 100.0) -> float:
    """Return *value* within its bounds."""
    return max(least, min(most, value))
