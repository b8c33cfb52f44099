"""The pod of a question: its standing, its demand, and where its owner was evicted from."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_core import InputError, Pod
from temper_plugin_power.classifier.hints import read_hints
from temper_plugin_power.extender.cluster import Cluster, Owner
from temper_plugin_power.extender.questions import texts
from temper_plugin_power.placing.demands import demand_of
from temper_plugin_power.placing.exempting import is_exempt
from temper_plugin_power.placing.subjects import PodView
from temper_plugin_power.resources.fields import flag_at, text_at, value_at
from temper_plugin_power.standing import standing_of
from temper_plugin_power.workloads.owners import workload_of

KINDS_OF_CONTAINERS = ("initContainers", "containers")
MOST_CONTAINERS, MOST_RESOURCES = 1000, 10_000
"""Without bounds, one object takes a core for a long time: 0.3 s for 14,000 containers, and 0.6 s
for 120,000 requests of resources."""


@frozen
class Reading:
    """The settings that decide what is known of a pod."""

    aliases: tuple[str, ...]
    min_confidence: float
    eviction_ttl_s: float


def view_of(pod: Mapping[str, Any], cluster: Cluster, reading: Reading, now: float) -> PodView:
    """Return what is known of a *pod* object, by itself and by the cluster's caches.

    A field of another type counts as absent. Raises InputError for too many containers, or requests
    of resources.
    """
    spec = value_at(pod, "spec")
    spec = spec if isinstance(spec, Mapping) else {}
    _check_containers(spec)
    record = _record_of(pod)
    workload = workload_of(record)
    standing = standing_of(
        read_hints(record.annotations, record.labels, reading.aliases),
        cluster.profiles.get(workload),
        reading.min_confidence,
        workload.profile_name,
    )
    evicted_from = cluster.evicted_from(_first_owner(pod), now, reading.eviction_ttl_s)
    demand = demand_of(spec, standing.workload_class)
    return PodView(standing, demand, evicted_from, is_exempt(spec))


def _check_containers(spec: Mapping[str, Any]) -> None:
    resources = 0
    for kind in KINDS_OF_CONTAINERS:
        containers = spec.get(kind)
        if not isinstance(containers, list):
            continue
        if len(containers) > MOST_CONTAINERS:
            raise InputError(f"pod.spec.{kind}: must be at most {MOST_CONTAINERS}")
        resources += sum(map(_resources_of, containers))
    if resources > MOST_RESOURCES:
        raise InputError(f"pod.spec: must name at most {MOST_RESOURCES} resources")


def _resources_of(container: object) -> int:
    """Return how many requests and limits a container has."""
    tables = (value_at(container, f"resources.{key}") for key in ("requests", "limits"))
    return sum(len(table) for table in tables if isinstance(table, Mapping))


def _record_of(pod: Mapping[str, Any]) -> Pod:
    owners = (each for each in _owners(pod) if flag_at(each, "controller"))
    owner = next((f"{text_at(each, 'kind')}/{text_at(each, 'name')}" for each in owners), "")
    return Pod(
        uid="",
        namespace=_namespace(pod),
        name=text_at(pod, "metadata.name"),
        annotations=texts(value_at(pod, "metadata.annotations")),
        labels=texts(value_at(pod, "metadata.labels")),
        owner=owner,
    )


def _first_owner(pod: Mapping[str, Any]) -> Owner:
    first = next(iter(_owners(pod)), None)
    return Owner(_namespace(pod), text_at(first, "kind"), text_at(first, "name"))


def _owners(pod: Mapping[str, Any]) -> list[Any]:
    owners = value_at(pod, "metadata.ownerReferences")
    return owners if isinstance(owners, list) else []


def _namespace(pod: Mapping[str, Any]) -> str:
    return text_at(pod, "metadata.namespace") or "default"
