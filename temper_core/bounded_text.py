"""Text from outside at a bounded length, to be kept, logged or sent."""

from collections.abc import Sequence
from itertools import accumulate, islice

LONGEST_TEXT = 500
LARGEST_LIST = 4_000
"""Characters of all texts of a list."""
ROOM_FOR_COUNT = 20
"""Characters."""


def shortened(text: str, most: int = LONGEST_TEXT) -> str:
    """Return *text*, or its first *most* characters and an ellipsis."""
    return text if len(text) <= most else f"{text[:most]}…"


def first_of(texts: Sequence[str], most: int) -> tuple[str, ...]:
    """Return at most *most* texts: the first of *texts*, shortened, and how many more there are.

    Together they have at most ``LARGEST_LIST`` characters. The result itself stays as it is.
    """
    told = tuple(shortened(text) for text in islice(texts, most))
    sizes = [*accumulate(map(len, told), initial=0)]
    if len(told) == len(texts) and sizes[-1] <= LARGEST_LIST:
        return told
    fitting = sum(size <= LARGEST_LIST - ROOM_FOR_COUNT for size in sizes[1:])
    count = min(fitting, most - 1)
    return (*told[:count], f"and {len(texts) - count} more")
