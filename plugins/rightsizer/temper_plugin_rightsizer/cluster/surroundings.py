"""The surroundings of the workloads of a cluster, from its API server."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import define, evolve, field

from temper_core import InputError, cpu_millis, memory_bytes
from temper_core.observed import count, rows, table, text
from temper_kube.api_server import ApiServer
from temper_kube.failures import ForbiddenError, NotFoundError
from temper_plugin_rightsizer.advice.bounds import joined
from temper_plugin_rightsizer.advice.quotas import FIELDS, Quotas
from temper_plugin_rightsizer.advice.surroundings import (
    Autoscaler,
    Bounds,
    ContainerKind,
    Range,
    Surroundings,
)
from temper_plugin_rightsizer.cluster.machines import MILLIS, ClusterMachines
from temper_plugin_rightsizer.fleet.workloads import NO_OWNER, Owners, Workload

HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
VPAS = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"
RESOURCE_QUOTAS = "/api/v1/resourcequotas"
LIMIT_RANGES, PODS, NODES = "/api/v1/limitranges", "/api/v1/pods", "/api/v1/nodes"
RESIZES_SINCE = 1, 33
"""The subresource ``resize`` of pods is on by default from this version of Kubernetes on."""
OBSERVES_ONLY = "Off"
Row = Mapping[str, Any]


@define
class ClusterSurroundings:
    """The surroundings of the containers of a cluster. *owners* has the controllers of ReplicaSets.

    ``unknown`` are sentences on what could not be read. ``places`` are the node and the workload of
    each pod, by namespace and name. ``machines`` are the nodes. ``pod_bounds`` are the bounds on
    whole pods by namespace.
    """

    owners: Owners
    can_resize: bool = False
    unknown: list[str] = field(factory=list)
    quotas: Quotas = field(factory=Quotas)
    machines: ClusterMachines = field(factory=ClusterMachines)
    pod_bounds: dict[str, Bounds] = field(factory=dict)
    places: dict[tuple[str, str], tuple[str, Workload]] = field(factory=dict)
    _autoscalers: dict[Workload, list[Autoscaler]] = field(factory=dict, init=False)
    _updaters: dict[Workload, tuple[str, str]] = field(factory=dict, init=False)
    _bounds: dict[str, Bounds] = field(factory=dict, init=False)
    _containers: dict[tuple[Workload, str], Surroundings] = field(factory=dict, init=False)

    def read(self, api: ApiServer) -> None:
        """Read all that the user may list. Raises MachineError if there is no API server."""
        for path, what, add in (
            (HPAS, "HorizontalPodAutoscalers", self._add_autoscaler),
            (VPAS, "VerticalPodAutoscalers", self._add_updater),
            (RESOURCE_QUOTAS, "ResourceQuotas", self._add_quota),
            (LIMIT_RANGES, "LimitRanges", self._add_bounds),
            (NODES, "prices of machines and idle headroom", self.machines.add_node),
            (
                PODS,
                "init containers, native sidecars, QoS classes and the nodes of pods",
                self._add_pod,
            ),
        ):
            self._read(api, path, what, add)
        release = api.find("/version") or {}
        self.can_resize = _version(release) >= RESIZES_SINCE

    def of(self, workload: Workload, container: str) -> Surroundings:
        """Return what is around a container."""
        known = self._containers.get((workload, container), Surroundings())
        name, mode = self._updaters.get(workload, ("", ""))
        told = f"the VPA {name} (mode {mode})" if name else ""
        return evolve(
            known,
            owner_kind=workload.kind,
            autoscalers=tuple(self._autoscalers.get(workload, ())),
            updater="" if mode == OBSERVES_ONLY else told,
            observer=told if mode == OBSERVES_ONLY else "",
            bounds=self._bounds.get(workload.namespace, Bounds()),
            resize=known.resize if self.can_resize else "",
        )

    def _read(self, api: ApiServer, path: str, what: str, add: Callable[[Row], None]) -> None:
        try:
            for item in api.each(path):
                add(item)
        except NotFoundError:
            pass  # the cluster has no such kind
        except ForbiddenError as error:
            self.unknown.append(f"{what} are not known here: {error}")
            if path == PODS:
                self.machines.knows_pods = False

    def _add_autoscaler(self, item: Row) -> None:
        spec = table(item, "spec")
        percents: dict[str, int | None] = {"cpu": None, "memory": None}
        for metric in rows(spec, "metrics"):
            resource = table(metric, "resource") or table(metric, "containerResource")
            percent = count(table(resource, "target"), "averageUtilization")
            if text(resource, "name") in percents and percent:
                percents[text(resource, "name")] = percent
        name = f"the HPA {_name(item)}"
        found = Autoscaler(name, percents["cpu"], percents["memory"])
        target = table(spec, "scaleTargetRef")
        self._autoscalers.setdefault(_target(item, target), []).append(found)

    def _add_updater(self, item: Row) -> None:
        spec = table(item, "spec")
        mode = text(table(spec, "updatePolicy"), "updateMode") or "Auto"
        self._updaters[_target(item, table(spec, "targetRef"))] = _name(item), mode

    def _add_bounds(self, item: Row) -> None:
        namespace = _namespace(item)
        for each in rows(table(item, "spec"), "limits"):
            known = {"Container": self._bounds, "Pod": self.pod_bounds}.get(text(each, "type"))
            if known is not None:
                known[namespace] = joined(known.get(namespace, Bounds()), _bounds(each))

    def _add_quota(self, item: Row) -> None:
        """Add a quota. One with scopes counts some pods only, and is left out."""
        spec, status = table(item, "spec"), table(item, "status")
        if spec.get("scopes") or spec.get("scopeSelector"):
            return
        hard, used = table(status, "hard"), table(status, "used")
        for name, (keys, _, _) in FIELDS.items():
            read = cpu_millis if name.startswith("cpu") else memory_bytes
            for key in keys:
                most = _amount(hard, key, read)
                if most is not None:
                    rest = most - (_amount(used, key, read) or 0)
                    self.quotas.bound(_namespace(item), name, _name(item), rest)

    def _add_pod(self, item: Row) -> None:
        self.machines.add_pod(item)
        workload = self._workload_of(item)
        spec, status = table(item, "spec"), table(item, "status")
        self.places[_namespace(item), _name(item)] = text(spec, "nodeName"), workload
        is_guaranteed = text(status, "qosClass") == "Guaranteed"
        for container, kind in _containers(spec):
            known = Surroundings(kind=kind, resize=_resize(container), is_guaranteed=is_guaranteed)
            self._containers[workload, text(container, "name")] = known

    def _workload_of(self, item: Row) -> Workload:
        namespace = _namespace(item)
        for owner in rows(table(item, "metadata"), "ownerReferences"):
            kind, name = text(owner, "kind"), text(owner, "name")
            if owner.get("controller") and kind not in NO_OWNER:
                return self.owners.controller(namespace, kind, name)
        return Workload(namespace, "Pod", _name(item))


def _containers(spec: Row) -> Iterator[tuple[Row, ContainerKind]]:
    for container in rows(spec, "containers"):
        yield container, ContainerKind.APP
    for container in rows(spec, "initContainers"):
        runs_on = text(container, "restartPolicy") == "Always"
        yield container, ContainerKind.SIDECAR if runs_on else ContainerKind.INIT


def _resize(container: Row) -> str:
    """Return how a container is resized in place."""
    restarts = [
        text(policy, "resourceName")
        for policy in rows(container, "resizePolicy")
        if text(policy, "restartPolicy") == "RestartContainer"
    ]
    if not restarts:
        return "without a restart"
    return f"with a restart of the container for {' and '.join(sorted(restarts))}"


def _bounds(limit: Row) -> Bounds:
    return Bounds(_range(limit, "cpu", cpu_millis), _range(limit, "memory", memory_bytes))


def _range(limit: Row, name: str, read: Callable[[object], int]) -> Range:
    # A ratio is a quantity too, such as 2 or 1500m.
    ratio = _amount(table(limit, "maxLimitRequestRatio"), name, cpu_millis)
    return Range(
        _amount(table(limit, "min"), name, read),
        _amount(table(limit, "max"), name, read),
        ratio / MILLIS if ratio else None,
    )


def _amount(amounts: Row, name: str, read: Callable[[object], int]) -> int | None:
    """Return a quantity. None if there is none, or it is malformed."""
    try:
        return read(amounts[name]) if name in amounts else None
    except InputError:
        return None


def _target(item: Row, reference: Row) -> Workload:
    return Workload(_namespace(item), text(reference, "kind"), text(reference, "name"))


def _name(item: Row) -> str:
    return text(table(item, "metadata"), "name")


def _namespace(item: Row) -> str:
    return text(table(item, "metadata"), "namespace")


def _version(release: Row) -> tuple[int, ...]:
    parts = (text(release, key).rstrip("+") for key in ("major", "minor"))
    numbers: Iterable[int] = (int(part) for part in parts if part.isascii() and part.isdigit())
    return tuple(numbers)
