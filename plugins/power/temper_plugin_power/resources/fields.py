"""Reads fields of Kubernetes objects by their paths. A field of another type counts as absent."""

from collections.abc import Mapping
from math import isfinite
from typing import Any


def value_at(document: object, path: str) -> Any:  # noqa: ANN401 - JSON
    """Return what is at a *path* such as ``spec.nodeName``, None if there is nothing."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def text_at(document: object, path: str) -> str:
    """Return a text, empty without one."""
    value = value_at(document, path)
    return value if isinstance(value, str) else ""


def number_at(document: object, path: str) -> float:
    """Return a number, whole or not, 0 without one."""
    value = value_at(document, path)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0.0
    try:
        number = float(value)
    except OverflowError:
        return 0.0
    return number if isfinite(number) else 0.0


def flag_at(document: object, path: str) -> bool:
    """Return whether a flag is set."""
    return value_at(document, path) is True
