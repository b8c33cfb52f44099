"""Autoscalers, bounds and quotas of the workloads of a fleet, by kube-state-metrics 2."""

from collections.abc import Callable, Sequence

from attrs import define, evolve, field

from temper_plugin_rightsizer.advice.bounds import joined
from temper_plugin_rightsizer.advice.quotas import FIELDS, Quotas
from temper_plugin_rightsizer.advice.surroundings import (
    Autoscaler,
    Bounds,
    ContainerKind,
    Range,
    Surroundings,
)
from temper_plugin_rightsizer.fleet.demands import millis, replica_of
from temper_plugin_rightsizer.fleet.queries import Names, Scope
from temper_plugin_rightsizer.fleet.workloads import Owners, Workload
from temper_prometheus.answers import Series

HPA = "kube_horizontalpodautoscaler_info"
HPA_TARGET = "kube_horizontalpodautoscaler_spec_target_metric"
INIT_CONTAINERS = "kube_pod_init_container_info"
LIMIT_RANGE = "kube_limitrange"
QUOTA = "kube_resourcequota"
SIDECAR_POLICY = "Always"
NOT_KNOWN = "not known by a Prometheus: VPA, in-place resize and QoS classes"


@define
class FleetSurroundings:
    """The surroundings of the containers of a fleet's workloads.

    *names* are kube-state-metrics' labels. ``init_kinds`` are the kinds of init containers by
    workload and name. ``pod_bounds`` are the bounds on whole pods by namespace.
    """

    owners: Owners
    names: Names
    quotas: Quotas = field(factory=Quotas)
    pod_bounds: dict[str, Bounds] = field(factory=dict)
    _autoscalers: dict[Workload, list[Autoscaler]] = field(factory=dict, init=False)
    _bounds: dict[str, Bounds] = field(factory=dict, init=False)
    _init_kinds: dict[tuple[Workload, str], ContainerKind] = field(factory=dict, init=False)

    def read(self, now: Callable[[str], Sequence[Series]], scope: Scope) -> None:
        """Ask by ``now(query)``. Raises ValueError for a damaged answer."""
        self._add_autoscalers(
            now(scope.select(HPA, self.names)),
            now(scope.select(HPA_TARGET, self.names, 'metric_target_type="utilization"')),
        )
        for series in now(scope.select(INIT_CONTAINERS, self.names)):
            replica = replica_of(series.labels, self.names)
            workload = self.owners.workload(replica.namespace, replica.pod)
            runs_on = series.labels.get("restart_policy") == SIDECAR_POLICY
            kind = ContainerKind.SIDECAR if runs_on else ContainerKind.INIT
            self._init_kinds[workload, replica.container] = kind
        limits = (
            'type=~"Container|Pod"',
            'constraint=~"min|max|maxLimitRequestRatio"',
            'resource=~"cpu|memory"',
        )
        for series in now(scope.select(LIMIT_RANGE, self.names, *limits)):
            self._add_bound(series)
        self._add_quotas(now(scope.select(QUOTA, self.names)))

    def of(self, workload: Workload, container: str) -> Surroundings:
        """Return the surroundings of a container."""
        return evolve(
            Surroundings(owner_kind=workload.kind),
            kind=self._init_kinds.get((workload, container), ContainerKind.APP),
            autoscalers=tuple(self._autoscalers.get(workload, ())),
            bounds=self._bounds.get(workload.namespace, Bounds()),
        )

    def _add_autoscalers(self, known: Sequence[Series], targets: Sequence[Series]) -> None:
        percents: dict[tuple[str, str, str], int] = {}
        for series in targets:
            labels = series.labels
            for _, value in series.values():
                place = self._place(series)
                percents[(*place, labels.get("metric_name", ""))] = round(value)
        for series in known:
            namespace, name = self._place(series)
            kind = series.labels.get("scaletargetref_kind", "")
            target = Workload(namespace, kind, series.labels.get("scaletargetref_name", ""))
            cpu, memory = (percents.get((namespace, name, each)) for each in ("cpu", "memory"))
            found = Autoscaler(f"the HPA {name}", cpu, memory)
            self._autoscalers.setdefault(target, []).append(found)

    def _place(self, series: Series) -> tuple[str, str]:
        labels = series.labels
        return labels.get(self.names.namespace, ""), labels.get("horizontalpodautoscaler", "")

    def _add_bound(self, series: Series) -> None:
        namespace = series.labels.get(self.names.namespace, "")
        is_cpu = series.labels.get("resource") == "cpu"
        for _, value in series.values():
            amount = millis(value) if is_cpu else int(value)
            bound = {
                "min": Range(least=amount),
                "max": Range(most=amount),
                "maxLimitRequestRatio": Range(ratio=value if value > 0 else None),
            }.get(series.labels.get("constraint", ""))
            if bound is None:
                raise ValueError("a LimitRange has another constraint than was asked for")
            bounds = Bounds(cpu=bound) if is_cpu else Bounds(memory=bound)
            known = self.pod_bounds if series.labels.get("type") == "Pod" else self._bounds
            known[namespace] = joined(known.get(namespace, Bounds()), bounds)

    def _add_quotas(self, found: Sequence[Series]) -> None:
        amounts: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
        for series in found:
            labels = series.labels
            place = labels.get(self.names.namespace, ""), labels.get("resourcequota", "")
            for _, value in series.values():
                by_kind = amounts.setdefault(place, {}).setdefault(labels.get("resource", ""), {})
                by_kind[labels.get("type", "")] = value
        for (namespace, quota), by_resource in amounts.items():
            for name, (keys, _, _) in FIELDS.items():
                for key in keys:
                    both = by_resource.get(key, {})
                    if "hard" in both:
                        left = both["hard"] - both.get("used", 0.0)
                        size = millis(left) if name.startswith("cpu") else int(left)
                        self.quotas.bound(namespace, name, quota, size)
