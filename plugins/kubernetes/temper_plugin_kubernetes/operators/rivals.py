"""Checks for other software in the cluster that places threads or sizes pods."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import frozen

from temper_core.console import named
from temper_kube.api_server import ApiServer
from temper_kube.failures import NotFoundError
from temper_kube.list_pages import Json
from temper_plugin_kubernetes.operators.findings import Finding, error, note, warning

WORKLOADS = (
    ("DaemonSet", "/apis/apps/v1/daemonsets"),
    ("Deployment", "/apis/apps/v1/deployments"),
)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OVERCOMMIT = "temper.codes/overcommit=enabled"
AUTOSCALERS = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"
HORIZONTAL = "/apis/autoscaling/v2/horizontalpodautoscalers"
MOST_CONTAINERS = 256
"""How many containers of a workload are read. 1.5 MiB have room for tens of thousands."""
LONGEST_IMAGE = 512
"""An image's reference is no longer. The author of a Deployment may write up to 1.5 MiB there."""
MAY_LOAD_BPF = {"ALL", "BPF", "SYS_ADMIN"}
_Record = TypeVar("_Record")


@frozen
class Rival:
    """A program, recognised by the names of its workloads, images and resources."""

    check: str
    name: str
    pattern: str
    groups: tuple[str, ...]
    why: str
    remedy: str
    is_foreign_scheduler: bool = False


RIVALS = (
    Rival(
        "koordinator",
        "Koordinator",
        r"koordlet|koord-manager|koord-scheduler",
        ("koordinator.sh",),
        "koordlet writes cpusets, quotas and cpu.idle of the same pods",
        "switch its CPU strategies off (slo-controller-config), or run the two on different nodes",
    ),
    Rival(
        "katalyst",
        "Katalyst",
        r"katalyst-(agent|controller|scheduler)",
        ("katalyst.kubewharf.io",),
        "its agent assigns cpusets to the same pods",
        "run the two on different nodes",
    ),
    Rival(
        "nri",
        "NRI resource policies",
        r"nri-resource-policy|nri-plugins|cri-resource-manager|cri-rm\b",
        ("config.nri", "criresmgr.intel.com"),
        "balloons and topology-aware policies pin containers, and pins outlast the policy",
        "remove the policy, then restart the pods that it has pinned",
    ),
    Rival(
        "tuned",
        "TuneD (node tuning operator)",
        r"\btuned\b|cluster-node-tuning-operator",
        ("tuned.openshift.io",),
        "its scheduler plugin changes policies and affinities of threads by command line",
        "use a profile without [scheduler] and isolated cores on Temper's nodes",
    ),
    Rival(
        "irqbalance",
        "irqbalance",
        r"irqbalance",
        (),
        "interrupts move onto fenced cores",
        "ban the fenced cores (IRQBALANCE_BANNED_CPULIST), or accept it",
    ),
    Rival(
        "cpu_pinning",
        "a CPU pinning operator",
        r"cpu-pooler|cpu-device-plugin|\bcmk\b|cpu-control-plane|craned\b|crane-agent",
        (),
        "it pins containers to CPUs, and affinities break layers",
        "run the two on different nodes",
    ),
    Rival(
        "foreign_scheduler",
        "another sched_ext scheduler",
        r"gthulhu|\bscx[-_](?!layered\b.*temper)",
        ("gthulhu.io",),
        "only one scheduler can be attached at a time; Temper never detaches another one",
        "remove it from Temper's nodes",
        is_foreign_scheduler=True,
    ),
)


def conflicting_software(api: ApiServer, namespace: str) -> Iterator[Finding]:
    """Find rivals by their workloads outside Temper's own namespace."""
    places: dict[str, list[str]] = {}
    for kind, path in WORKLOADS:
        for sighting in _recorded(api, path, partial(_sighting, kind, namespace)):
            for check in sighting.checks:
                places.setdefault(check, []).append(sighting.where)
    yield from (_conflict(rival, places[rival.check]) for rival in RIVALS if rival.check in places)


def resource_definitions(api: ApiServer) -> Iterator[Finding]:
    """Find rivals by their resource definitions, which may be left from an earlier installation."""
    names = api.read(DEFINITIONS, _name)
    for rival in RIVALS:
        kinds = [name for name in names if name.endswith(tuple(f".{g}" for g in rival.groups))]
        if kinds and rival.groups:
            yield note(
                f"{rival.check}_resources",
                f"resource definitions of {rival.name}: {named(kinds)}",
                f"if it runs on Temper's nodes: {rival.remedy}",
            )


def autoscalers(api: ApiServer) -> Iterator[Finding]:
    """Find autoscalers in the namespaces in which the webhook lowers CPU requests."""
    for namespace in api.read("/api/v1/namespaces", _name, OVERCOMMIT):
        vertical = _in_namespace(api, AUTOSCALERS, namespace, _name)
        if vertical:
            yield warning(
                "vpa",
                f"VPA and the overcommit webhook both set requests in {namespace}: "
                f"{named(vertical)}",
                "one owner per namespace: remove the label temper.codes/overcommit, or set "
                "those autoscalers to updateMode Off",
            )
        horizontal = _in_namespace(api, HORIZONTAL, namespace, _name_if_by_cpu)
        if horizontal:
            yield note(
                "hpa",
                f"HPA scales by CPU utilisation in {namespace}, a share of the lowered requests: "
                f"{named(horizontal)}",
                "it scales out sooner; if that is not intended, divide the target by the webhook's "
                "factor",
            )


@frozen
class _Sighting:
    """A workload that is one of a rival's, and the checks of those rivals."""

    where: str
    checks: tuple[str, ...]


def _sighting(kind: str, namespace: str, item: Json) -> _Sighting | None:
    """Return what is kept of a workload. None for one of no rival, and for one in *namespace*."""
    metadata = item["metadata"]
    if metadata.get("namespace") == namespace:
        return None
    names = _names(item)
    checks = tuple(
        rival.check
        for rival in RIVALS
        if any(re.search(rival.pattern, name) for name in names) and _counts(rival, item)
    )
    where = f"{kind} {metadata.get('namespace')}/{metadata['name']}"
    return _Sighting(where, checks) if checks else None


def _recorded(
    api: ApiServer, path: str, record_of: Callable[[Json], _Record | None]
) -> Iterator[_Record]:
    """Yield the records of a collection that are not None. No object is kept."""
    return (record for record in api.read(path, record_of) if record is not None)


def _conflict(rival: Rival, where: Sequence[str]) -> Finding:
    make = error if rival.is_foreign_scheduler else warning
    return make(rival.check, f"{rival.name} runs ({named(where)}): {rival.why}", rival.remedy)


def _counts(rival: Rival, item: Json) -> bool:
    """Whether *item* is of the kind in its name. Only one with rights and pods is a scheduler.

    Names are free to choose. Rights are the cluster's to grant, and pods are counted by its
    controllers.
    """
    if not rival.is_foreign_scheduler:
        return True
    status = item.get("status") or {}
    has_pods = status.get("currentNumberScheduled") or status.get("replicas")
    return bool(has_pods) and any(map(_may_load_bpf, _containers(item)))


def _may_load_bpf(container: Mapping[str, Any]) -> bool:
    context = container.get("securityContext") or {}
    added = (context.get("capabilities") or {}).get("add") or ()
    names = {name.upper().removeprefix("CAP_") for name in added}
    return bool(context.get("privileged")) or not names.isdisjoint(MAY_LOAD_BPF)


def _containers(item: Json) -> Sequence[Mapping[str, Any]]:
    containers: Sequence[Mapping[str, Any]] = item["spec"]["template"]["spec"].get("containers")
    return (containers or ())[:MOST_CONTAINERS]


def _names(item: Json) -> list[str]:
    images = [container.get("image", "")[:LONGEST_IMAGE] for container in _containers(item)]
    return [item["metadata"]["name"], *images]


def _in_namespace(
    api: ApiServer, path: str, namespace: str, name_of: Callable[[Json], str | None]
) -> list[str]:
    base, _, resource = path.rpartition("/")
    try:
        return list(_recorded(api, f"{base}/namespaces/{namespace}/{resource}", name_of))
    except NotFoundError:  # the cluster has no such kind
        return []


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _name_if_by_cpu(item: Json) -> str | None:
    return _name(item) if _goes_by_cpu(item) else None


def _goes_by_cpu(item: Json) -> bool:
    for metric in item["spec"].get("metrics") or ():
        source = metric.get("resource") or metric.get("containerResource") or {}
        is_share = (source.get("target") or {}).get("type") == "Utilization"
        if source.get("name") == "cpu" and is_share:
            return True
    return False
