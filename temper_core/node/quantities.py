"""Kubernetes quantities: ``250m``, ``0.5``, ``1e3``, ``2Gi``, as whole millicores or bytes.

The grammar is that of apimachinery's ``resource.Quantity``: a signed decimal number and one
suffix, decimal (n u m k M G T P E), binary (Ki .. Ei) or an exponent (e3, E-2). As in Kubernetes,
values are rounded up and capped at 2**63 - 1. The arithmetic uses integers only.
"""

import re
from functools import lru_cache

from temper_core.errors import InputError

LARGEST = 2**63 - 1
LONGEST = 128

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# Beyond this exponent every quantity of LONGEST digits is below 1 or above LARGEST.
_FURTHEST_EXPONENT = 2 * LONGEST


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


@lru_cache(maxsize=4096)
def _rounded_up(text: str, scale: int, what: str, examples: str) -> int:
    matched = _QUANTITY.fullmatch(text.strip()) if len(text) <= LONGEST else None
    digits = matched and matched["whole"] + (matched["fraction"] or "")
    if matched is None or not digits:
        raise InputError(f"{text[:40]!r} is no {what} quantity such as {examples}")
    mantissa = int(digits)
    if matched["sign"] == "-" and mantissa:
        raise InputError(f"{text[:40]!r} is negative; a {what} quantity is at least 0")
    ten = scale - len(matched["fraction"] or "") + _power_of_ten(matched)
    two = _POWERS_OF_TWO.get(matched["suffix"] or "", 0)
    return min(_ceiling(mantissa << two, ten), LARGEST)


def _power_of_ten(matched: "re.Match[str]") -> int:
    if matched["exponent"] is None:
        return _POWERS_OF_TEN.get(matched["suffix"] or "", 0)
    return max(-_FURTHEST_EXPONENT, min(int(matched["exponent"]), _FURTHEST_EXPONENT))


def _ceiling(mantissa: int, ten: int) -> int:
    """Return ``mantissa * 10**ten``, rounded up to a whole number."""
    power: int = 10 ** abs(ten)
    return mantissa * power if ten >= 0 else -(-mantissa // power)
