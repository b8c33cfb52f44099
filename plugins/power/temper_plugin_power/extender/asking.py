"""The pod of a question: its standing, its demand, and where its owner was evicted from."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_core import InputError, Pod
from temper_plugin_power.classifier.hints import read_hints
from temper_plugin_power.extender.cluster import Cluster, Owner
from temper_plugin_power.extender.questions import texts
from temper_plugin_power.placing.demands import demand_of
from temper_plugin_power.placing.subjects import PodView
from temper_plugin_power.resources.fields import flag_at, text_at, value_at
from temper_plugin_power.standing import standing_of
from temper_plugin_power.workloads.owners import workload_of

KINDS_OF_CONTAINERS = ("initContainers", "containers")
MOST_CONTAINERS = 1000
"""Without a bound, one object takes a core for a long time: 0.3 s for 14,000 containers."""


@frozen
class Reading:
    """The settings that decide what is known of a pod."""

    aliases: tuple[str, ...]
    min_confidence: float
    eviction_ttl_s: float


def view_of(pod: Mapping[str, Any], cluster: Cluster, reading: Reading, now: float) -> PodView:
    """Return what is known of a *pod* object, by itself and by the cluster's caches.

    A field of another type counts as absent. Raises InputError for too many containers.
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
    return PodView(standing, demand_of(spec, standing.workload_class), evicted_from)


def _check_containers(spec: Mapping[str, Any]) -> None:
    for kind in KINDS_OF_CONTAINERS:
        containers = spec.get(kind)
        if isinstance(containers, list) and len(containers) > MOST_CONTAINERS:
            raise InputError(f"pod.spec.{kind}: must be at most {MOST_CONTAINERS}")


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
