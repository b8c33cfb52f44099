"""Pods as the operator keeps them: what it reads, and nothing else of the object."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, frozen

from temper_core import Container
from temper_kube.list_pages import Json
from temper_plugin_power.classifier.hints import Hints, read_hints
from temper_plugin_power.operating.binding import is_bound_to_node
from temper_plugin_power.operating.buckets import Bucket, explicit_bucket
from temper_plugin_power.resources.fields import text_at, value_at
from temper_plugin_power.resources.reading import CUT
from temper_plugin_power.workloads.owners import TEMPLATE_HASH, Workload, workload_of
from temper_plugin_power.workloads.pod_objects import measured_pod
from temper_plugin_power.workloads.pods import MeasuredPod

HINT_KEYS = ("workload-class", "reschedulable", "cpu-sensitivity", "gpu-sensitivity")
LABEL_KEYS = ("power-profile",)
LONGEST_HINT = 64
"""Characters that are kept of an annotation. The API server takes 256 KiB, of every pod."""
MOST_CONTAINERS = 16
"""Containers that are kept as they are, as many as are compared with profiles."""


@frozen
class Owner:
    """An owner as the references of an object name it."""

    api_version: str
    kind: str
    name: str
    uid: str


@frozen
class KnownPod:
    """A pod that has not ended. Its annotations and labels are those that the operator reads."""

    measured: MeasuredPod
    workload: Workload
    hints: Hints
    explicit: Bucket
    phase: str
    is_deleting: bool
    is_bound_to_node: bool
    owner: Owner | None

    @property
    def counts(self) -> bool:
        """Whether the pod runs on its node, and is to stay there."""
        return self.phase not in ("Pending", "") and not self.is_deleting

    @property
    def node(self) -> str:
        """The node, empty before it has one."""
        return self.measured.node


def pod_reader(prefixes: tuple[str, ...]) -> Callable[[Json], KnownPod | None]:
    """Return the reader of Pod objects, whose annotations have *prefixes*, the strongest first."""
    annotations = frozenset(f"{prefix}/{key}" for prefix in prefixes for key in HINT_KEYS)
    labels = frozenset(f"{prefix}/{key}" for prefix in prefixes for key in LABEL_KEYS)

    def read(item: Json) -> KnownPod | None:
        measured = measured_pod(item, "the pod", doubted=lambda _: None)
        if measured is None:
            return None
        pod = measured.pod
        hints = ((key, pod.annotations[key]) for key in annotations & pod.annotations.keys())
        own = {key: value[:LONGEST_HINT] for key, value in hints}
        wanted = () if pod.wanted_profile is None else (pod.wanted_profile,)
        said = {key: value for key, value in pod.labels.items() if key in labels}
        known = evolve(
            pod,
            annotations={**own, **dict(wanted)},
            labels={**said, **_kept(pod.labels)},
            containers=_bounded(pod.containers),
            cgroups=(),
            priority_class="",
        )
        spec = value_at(item, "spec") or {}
        owner = controller_of(item)
        kind = "" if owner is None else owner.kind
        return KnownPod(
            measured=evolve(measured, pod=known),
            workload=workload_of(pod),
            hints=read_hints(own, said, prefixes[1:]),
            explicit=explicit_bucket(own, spec),
            phase=text_at(item, "status.phase"),
            is_deleting=bool(value_at(item, "metadata.deletionTimestamp")),
            is_bound_to_node=is_bound_to_node(pod.annotations, kind, spec),
            owner=owner,
        )

    return read


def controller_of(item: Json) -> Owner | None:
    """Return the owner that controls an object, None without one."""
    owners = value_at(item, "metadata.ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("controller") is True:
            keys = ("apiVersion", "kind", "name", "uid")
            return Owner(*(_text(owner, key)[:CUT] for key in keys))
    return None


def _bounded(containers: tuple[Container, ...]) -> tuple[Container, ...]:
    """Return the first *containers*, and one that has the memory limits of all others."""
    rest = containers[MOST_CONTAINERS:]
    if not rest:
        return containers
    limit = sum(each.memory_limit_bytes or 0 for each in rest)
    return (*containers[:MOST_CONTAINERS], Container("", memory_limit_bytes=limit))


def _kept(labels: Mapping[str, str]) -> Mapping[str, str]:
    return {TEMPLATE_HASH: labels[TEMPLATE_HASH]} if TEMPLATE_HASH in labels else {}


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    return value if isinstance(value, str) else ""
