"""``temper overcommit report``: what runs lowered in a cluster, and what may stand in its way."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from temper_core import InputError, cpu_millis
from temper_core.console import columns
from temper_kube.api_server import ApiServer
from temper_plugin_density.cluster_access import find_access
from temper_plugin_density.overcommit import originals
from temper_plugin_density.overcommit.names import CHOICE, ENABLED
from temper_plugin_density.overcommit.pod_objects import Place, read
from temper_plugin_density.overcommit.policy import LEAST_MILLIS

ENDED = ("Succeeded", "Failed")
HEADINGS = ("namespace", "asked for", "pods", "lowered", "freed", "what stands in the way")


@define
class NamespaceStanding:
    """One namespace: how many of its pods run, how many of them lowered, and what that frees."""

    namespace: str
    is_labelled: bool = False
    pods: int = 0
    lowered: int = 0
    freed_millis: int = 0
    findings: list[str] = field(factory=list)


@frozen
class ClusterView:
    """What the cluster was seen to have. Objects as the API server writes them."""

    labelled: frozenset[str]
    pods: Iterable[Mapping[str, Any]]
    limit_ranges: tuple[Mapping[str, Any], ...]


def report_on(kubeconfig: Path | None, output: str) -> tuple[str, bool]:
    """Return the report, and whether it has findings. Raise MachineError without an answer."""
    with ApiServer(find_access(kubeconfig)) as server:
        standings = stand(_see(server))
    text = _as_json(standings) if output == "json" else _as_table(standings)
    return text, any(each.findings for each in standings)


def _see(server: ApiServer) -> ClusterView:
    labelled = server.list("/api/v1/namespaces", f"{CHOICE}={ENABLED}")
    return ClusterView(
        frozenset(each["metadata"]["name"] for each in labelled),
        # One after the other: all pods of a large cluster would not fit into memory.
        server.each("/api/v1/pods"),
        tuple(server.list("/api/v1/limitranges")),
    )


def stand(seen: ClusterView) -> tuple[NamespaceStanding, ...]:
    """Count by namespace. Those that neither ask for it nor have lowered pods are left out."""
    found: defaultdict[str, NamespaceStanding] = defaultdict(lambda: NamespaceStanding(""))
    for pod in seen.pods:
        if (pod.get("status") or {}).get("phase") not in ENDED:
            _count(found[pod["metadata"]["namespace"]], pod)
    for name in seen.labelled:
        found[name].is_labelled = True
    for limit_range in seen.limit_ranges:
        if (name := limit_range["metadata"]["namespace"]) in seen.labelled:
            found[name].findings.extend(_in_the_way(limit_range))
    named = [evolve(each, namespace=name) for name, each in sorted(found.items())]
    return tuple(each for each in named if each.is_labelled or each.lowered)


def _count(standing: NamespaceStanding, pod: Mapping[str, Any]) -> None:
    standing.pods += 1
    freed = freed_millis(pod)
    standing.lowered += freed > 0
    standing.freed_millis += freed


def freed_millis(document: Mapping[str, Any]) -> int:
    """Return by how much a pod asks for less than it did at first. 0 where it does not."""
    try:
        pod = read(document)
    except InputError:
        return 0
    claims = originals.claimed(pod.pod.annotations)
    before: dict[Place, int] = {}
    for request in pod.requests:
        claim = originals.claimed_millis(claims.get(request.container))
        if claim is not None and claim > request.millis:
            before[request.place] = claim
    return pod.millis_with(before) - pod.pod.cpu_request_millis


def _in_the_way(limit_range: Mapping[str, Any]) -> Iterator[str]:
    """Name what would refuse a pod because its request is lowered."""
    name = limit_range["metadata"]["name"]
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        least = (limit.get("min") or {}).get("cpu")
        if least is not None and cpu_millis(least) > LEAST_MILLIS:
            yield f"LimitRange {name}: refuses requests below {least}"
        if "cpu" in (limit.get("maxLimitRequestRatio") or {}):
            yield f"LimitRange {name}: refuses limits that are a multiple of the request"


def _as_table(standings: Iterable[NamespaceStanding]) -> str:
    rows = [
        (
            each.namespace,
            "yes" if each.is_labelled else "no",
            str(each.pods),
            str(each.lowered),
            f"{each.freed_millis}m",
            "; ".join(each.findings) or "-",
        )
        for each in standings
    ]
    if not rows:
        return f"No namespace is labelled {CHOICE}={ENABLED}, and no pod runs lowered."
    return "\n".join(columns(HEADINGS, rows))


def _as_json(standings: Iterable[NamespaceStanding]) -> str:
    rows = [
        {
            "namespace": each.namespace,
            "is_labelled": each.is_labelled,
            "pods": each.pods,
            "lowered": each.lowered,
            "freed_millis": each.freed_millis,
            "findings": each.findings,
        }
        for each in standings
    ]
    return json.dumps(rows, indent=2)
