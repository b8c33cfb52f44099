"""Bounds of Pod objects that arrive before the API server has validated them."""

from collections.abc import Mapping
from typing import Any

from temper_core import InputError

KINDS_OF_CONTAINERS = ("initContainers", "containers")
MOST_CONTAINERS = 1000
"""Without a bound, one object takes a core for a long time: 0.3 s for 14,000 containers."""


def check_containers(spec: Mapping[str, Any]) -> None:
    """Raise InputError if the *spec* of a pod has too many containers."""
    for kind in KINDS_OF_CONTAINERS:
        containers = spec.get(kind)
        if isinstance(containers, list) and len(containers) > MOST_CONTAINERS:
            raise InputError(f"spec.{kind}: must be at most {MOST_CONTAINERS}")
