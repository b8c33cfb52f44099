"""Kubernetes quantities: ``250m``, ``0.5``, ``1e3``, ``2Gi``, as whole millicores or bytes.

The grammar is that of apimachinery's ``resource.Quantity``: a signed decimal number and one
suffix, decimal (n u m k M G T P E), binary (Ki .. Ei) or an exponent (e3, E-2). As in Kubernetes,
values are rounded up and capped at 2**63 - 1, and a text may have any length: the API server keeps
the leading zeros of a pod's author. The arithmetic uses integers only.
"""

import re
from functools import lru_cache

from temper_core.errors import InputError

LARGEST = 2**63 - 1

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# With this many digits a value up to LARGEST is exact to 10**-100, and whole numbers divided by
# 2**60 are multiples of that. So one digit more for all that follow gives the same ceiling.
_MOST_DIGITS = 128
# Beyond this exponent every quantity of so many digits is below 1 or above LARGEST.
_FURTHEST_EXPONENT = 2 * _MOST_DIGITS
_MOST_EXPONENT_DIGITS = 19
_LONGEST_KEPT = 64


def cpu_millis(quantity: object) -> int:
    """Return a CPU quantity in millicores, rounded up. Raise InputError if it is malformed.

    A number means the same as in a Kubernetes manifest: ``cpu: 2``, ``cpu: 0.5``.
    """
    return _rounded_up(_as_text(quantity, "CPU"), 3, "CPU", "'500m', '2' or '0.5'")


def memory_bytes(quantity: object) -> int:
    """Return a memory quantity in bytes, rounded up. Raise InputError if it is malformed."""
    return _rounded_up(_as_text(quantity, "memory"), 0, "memory", "'128Mi', '2Gi' or '1e9'")


def _as_text(quantity: object, what: str) -> str:
    if isinstance(quantity, str):
        return quantity
    if isinstance(quantity, int | float) and not isinstance(quantity, bool):
        return _number_text(quantity)
    raise InputError(f"must be a {what} quantity, not {type(quantity).__name__}")


def _number_text(number: float) -> str:
    # Converting a huge integer to text takes quadratic time, or fails in Python.
    if isinstance(number, int) and abs(number) > LARGEST:
        return "1e99" if number > 0 else "-1e99"
    return str(number)


def _rounded_up(text: str, scale: int, what: str, examples: str) -> int:
    # A pod's author chooses the length, and remembered texts take memory.
    read = _read_anew if len(text) > _LONGEST_KEPT else _read
    return read(text, scale, what, examples)


def _read_anew(text: str, scale: int, what: str, examples: str) -> int:
    matched = _QUANTITY.fullmatch(text.strip())
    whole, fraction = (matched["whole"], matched["fraction"] or "") if matched else ("", "")
    exponent = _power_of_ten(matched) if matched else None
    if matched is None or exponent is None or not whole + fraction:
        raise InputError(f"{text[:40]!r} is no {what} quantity such as {examples}")
    digits = (whole + fraction).lstrip("0")
    if matched["sign"] == "-" and digits:
        raise InputError(f"{text[:40]!r} is negative; a {what} quantity is at least 0")
    mantissa, left_out = _bounded(digits)
    ten = scale - len(fraction) + left_out + exponent
    ten = max(-_FURTHEST_EXPONENT, min(ten, _FURTHEST_EXPONENT))
    two = _POWERS_OF_TWO.get(matched["suffix"] or "", 0)
    return min(_ceiling(mantissa << two, ten), LARGEST)


_read = lru_cache(maxsize=4096)(_read_anew)


def _bounded(digits: str) -> tuple[int, int]:
    """Return a mantissa, and the power of ten by which *digits* are larger.

    Python converts no more than 4,300 digits, and takes quadratic time for them.
    """
    left_out = len(digits) - _MOST_DIGITS
    if left_out <= 0:
        return int(digits or "0"), 0
    rest = "1" if digits[_MOST_DIGITS:].strip("0") else "0"
    return int(digits[:_MOST_DIGITS] + rest), left_out - 1


def _power_of_ten(matched: "re.Match[str]") -> int | None:
    """Return the power of ten of the suffix. None for an exponent of more than 64 bits."""
    if matched["exponent"] is None:
        return _POWERS_OF_TEN.get(matched["suffix"] or "", 0)
    digits = matched["exponent"].lstrip("+-").lstrip("0")
    if len(digits) > _MOST_EXPONENT_DIGITS:
        return None
    exponent = int(digits or "0") * (-1 if matched["exponent"].startswith("-") else 1)
    if not -LARGEST - 1 <= exponent <= LARGEST:
        return None
    # As in Kubernetes, where quota and kubelet use the lower 32 bits.
    return (exponent + 2**31) % 2**32 - 2**31


def _ceiling(mantissa: int, ten: int) -> int:
    """Return ``mantissa * 10**ten``, rounded up to a whole number."""
    power: int = 10 ** abs(ten)
    return mantissa * power if ten >= 0 else -(-mantissa // power)
