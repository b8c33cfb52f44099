"""JSON merge patches (RFC 7396): what turns one document into another."""

from collections.abc import Container, Mapping
from typing import Any

Table = Mapping[str, Any]


def merge_change(before: Table, after: Table, kept: Container[str] = ()) -> Table:
    """Return the patch that turns *before* into *after*, empty if they are equal.

    A key that *after* lacks is removed, unless it is *kept*.
    """
    change: dict[str, Any] = {key: None for key in before if key not in after and key not in kept}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = merge_change(old, value)
            if inner:
                change[key] = inner
        elif key not in before or old != value:
            change[key] = value
    return change
