"""Reads the watched objects into the records of the cluster. Nothing raises."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import evolve

from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.extender.cluster import Eviction, Owner
from temper_plugin_power.extender.places import TwinReport
from temper_plugin_power.operating.buckets import PROFILE_KEY
from temper_plugin_power.operating.twin import Hardware
from temper_plugin_power.resources.fields import text_at, value_at
from temper_plugin_power.resources.reading import (
    age_s,
    hardware_at,
    node_name,
    profile_at,
    twin_at,
    workload_at,
)
from temper_plugin_power.workloads.owners import Workload

EVICTED_FROM = "joulie.io/last-eviction-from-class"
EVICTED_AT = "joulie.io/last-eviction-time"
NODE_CLASSES = ("eco", "performance")
EPOCH = datetime.fromtimestamp(0, UTC)

Object = Mapping[str, Any]


def twin_of_object(item: Object) -> tuple[str, TwinReport]:
    """Return the node of a NodeTwin, and its state."""
    return node_name(item), TwinReport(twin_at(item), _time(text_at(item, "status.lastUpdated")))


def hardware_of_object(item: Object) -> tuple[str, Hardware]:
    """Return the node of a NodeHardware, and what it has."""
    return node_name(item), hardware_at(item)


def label_of_object(item: Object) -> tuple[str, str]:
    """Return the name of a Node, and its label ``power-profile``, empty without one."""
    return text_at(item, "metadata.name"), label_of(value_at(item, "metadata.labels"))


def label_of(labels: object) -> str:
    """Return the label ``power-profile`` of *labels*, empty without one."""
    value = labels.get(PROFILE_KEY) if isinstance(labels, Mapping) else None
    return value if isinstance(value, str) else ""


def profile_of_object(item: Object) -> tuple[Workload, PowerProfile]:
    """Return the workload of a WorkloadProfile, and its profile without the text of its reason."""
    return workload_at(item), evolve(profile_at(item), reason="")


def eviction_of_object(kind: str) -> Callable[[Object], tuple[Owner, Eviction] | None]:
    """Return a reader of the evictions that owners of *kind* remember."""

    def read(item: Object) -> tuple[Owner, Eviction] | None:
        annotations = value_at(item, "metadata.annotations")
        if not isinstance(annotations, Mapping) or EVICTED_FROM not in annotations:
            return None
        node_class, at = annotations[EVICTED_FROM], _time(str(annotations.get(EVICTED_AT)))
        if node_class not in NODE_CLASSES:
            return None
        namespace, name = (text_at(item, f"metadata.{key}") for key in ("namespace", "name"))
        return Owner(namespace, kind, name), Eviction(node_class, at)

    return read


def _time(text: str) -> float:
    """Return an RFC 3339 time in seconds since the epoch, minus infinity for another text."""
    age = age_s({"status": {"lastUpdated": text}}, EPOCH)
    return float("-inf") if age is None else -age
