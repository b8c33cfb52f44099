"""Which pods can be on one node only."""

from collections.abc import Mapping
from typing import Any

from temper_plugin_power.operating.buckets import required_terms, tables

MIRROR = "kubernetes.io/config.mirror"


def is_bound_to_node(annotations: Mapping[str, str], owner: str, spec: Mapping[str, Any]) -> bool:
    """Return whether a pod can be nowhere else. *owner* is the kind of its controller.

    The author of a pod may forge a mirror's annotation and a DaemonSet as its controller. The
    scheduler itself obeys what ``names_its_node`` reads.
    """
    return MIRROR in annotations or owner == "DaemonSet" or names_its_node(spec)


def names_its_node(spec: Mapping[str, Any]) -> bool:
    """Return whether the scheduler may place a pod on one node only, which it names.

    The controller of DaemonSets writes such an affinity into every pod.
    """
    terms = list(required_terms(spec))
    named = {name for term in terms for name in _names(term)}
    return len(named) == 1 and all(any(_names(term)) for term in terms)


def _names(term: Mapping[str, Any]) -> list[str]:
    """Return the names of nodes that *term* requires. It may have one."""
    values = (
        each.get("values")
        for each in tables(term, "matchFields")
        if (each.get("key"), each.get("operator")) == ("metadata.name", "In")
    )
    # The API server takes one value.
    found = (each[0] for each in values if isinstance(each, list) and len(each) == 1)
    return [each for each in found if isinstance(each, str)]
