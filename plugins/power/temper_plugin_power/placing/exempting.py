"""Finds the pods that no node rejects: elsewhere they are nowhere, or the cluster needs them."""

from collections.abc import Mapping
from typing import Any

from temper_plugin_power.operating.binding import names_its_node

SYSTEM_CRITICAL = 2_000_000_000
"""The least priority of Kubernetes' own classes. The API server refuses others that have it."""
SYSTEM_CLASSES = ("system-node-critical", "system-cluster-critical")


def is_exempt(spec: Mapping[str, Any]) -> bool:
    """Return whether no node rejects a pod. Only what the scheduler obeys itself counts."""
    return names_its_node(spec) or _is_critical(spec)


def _is_critical(spec: Mapping[str, Any]) -> bool:
    priority = spec.get("priority")
    if type(priority) is int:
        return priority >= SYSTEM_CRITICAL
    # A manifest that the API server has not seen.
    return spec.get("priorityClassName") in SYSTEM_CLASSES
