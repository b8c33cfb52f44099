"""``temper overcommit report``: lowered pods of a cluster, and obstacles to lowering."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from temper_core import InputError, cpu_millis
from temper_core.console import columns, document_text
from temper_kube.api_server import ApiServer
from temper_kube.bounded_answers import bounded_answers
from temper_plugin_density.cluster_access import find_access
from temper_plugin_density.overcommit import originals
from temper_plugin_density.overcommit.names import CHOICE, ENABLED
from temper_plugin_density.overcommit.pod_objects import Place, read
from temper_plugin_density.overcommit.policy import LEAST_MILLIS, MOST_FREED_MILLIS

ENDED = ("Succeeded", "Failed")
MOST_FINDINGS = 16
"""How many findings of a LimitRange are kept."""
LONGEST_QUOTED = 64
"""Characters of a quantity that are kept. The API server takes a million leading zeros."""
HEADINGS = ("namespace", "asked for", "pods", "lowered", "freed", "what stands in the way")


@define
class NamespaceStanding:
    """One namespace: its running pods, how many of them are lowered, and the freed millicores."""

    namespace: str
    is_labelled: bool = False
    pods: int = 0
    lowered: int = 0
    freed_millis: int = 0
    findings: list[str] = field(factory=list)


@frozen
class Obstacles:
    """What a LimitRange of a namespace has against lowered requests."""

    namespace: str
    findings: tuple[str, ...]


@frozen
class ClusterView:
    """The objects of the cluster. Pods are as the API server returns them."""

    labelled: frozenset[str]
    pods: Iterable[Mapping[str, Any]]
    obstacles: tuple[Obstacles, ...]


def report_on(kubeconfig: Path | None, output: str) -> tuple[str, bool]:
    """Return the report, and whether it has findings. Raise MachineError if no server answers."""
    with ApiServer(find_access(kubeconfig)) as server, bounded_answers():
        standings = stand(_see(server))
    text = _as_json(standings) if output == "json" else _as_table(standings)
    return text, any(standing.findings for standing in standings)


def _see(server: ApiServer) -> ClusterView:
    return ClusterView(
        frozenset(server.read("/api/v1/namespaces", _name, f"{CHOICE}={ENABLED}")),
        # Read one by one: all pods of a large cluster would not fit into memory.
        server.each("/api/v1/pods"),
        server.read("/api/v1/limitranges", obstacles_of),
    )


def _name(namespace: Mapping[str, Any]) -> str:
    return str(namespace["metadata"]["name"])


def obstacles_of(limit_range: Mapping[str, Any]) -> Obstacles:
    """Return what is kept of a LimitRange. Its author may write up to 1.5 MiB."""
    findings = islice(_in_the_way(limit_range), MOST_FINDINGS)
    return Obstacles(limit_range["metadata"]["namespace"], tuple(findings))


def stand(seen: ClusterView) -> tuple[NamespaceStanding, ...]:
    """Count by namespace. Namespaces without the label and without lowered pods are left out."""
    standings: defaultdict[str, NamespaceStanding] = defaultdict(lambda: NamespaceStanding(""))
    for pod in seen.pods:
        if (pod.get("status") or {}).get("phase") not in ENDED:
            _count(standings[pod["metadata"]["namespace"]], pod)
    for name in seen.labelled:
        standings[name].is_labelled = True
    for each in seen.obstacles:
        if each.namespace in seen.labelled:
            standings[each.namespace].findings.extend(each.findings)
    ordered = [evolve(standing, namespace=name) for name, standing in sorted(standings.items())]
    return tuple(standing for standing in ordered if standing.is_labelled or standing.lowered)


def _count(standing: NamespaceStanding, pod: Mapping[str, Any]) -> None:
    standing.pods += 1
    freed = freed_millis(pod)
    standing.lowered += freed > 0
    standing.freed_millis += freed


def freed_millis(document: Mapping[str, Any]) -> int:
    """Return the difference between a pod's original and current requests. 0 if it has none.

    The creator of a pod may write the annotation. A request that no pod can have is not counted.
    """
    try:
        pod = read(document)
    except InputError:
        return 0
    claims = originals.claimed(pod.pod.annotations)
    before: dict[Place, int] = {}
    for request in pod.requests:
        claim = originals.claimed_millis(claims.get(request.container))
        if claim is not None and request.millis < claim <= (request.limit_millis or claim):
            before[request.place] = claim
    freed = pod.millis_with(before) - pod.pod.cpu_request_millis
    return freed if freed <= MOST_FREED_MILLIS else 0


def _in_the_way(limit_range: Mapping[str, Any]) -> Iterator[str]:
    """Yield the constraints that would refuse a pod because of its lowered request."""
    name = limit_range["metadata"]["name"]
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        least = (limit.get("min") or {}).get("cpu")
        if least is not None and _millis(least) > LEAST_MILLIS:
            yield f"LimitRange {name}: refuses requests below {str(least)[:LONGEST_QUOTED]}"
        if "cpu" in (limit.get("maxLimitRequestRatio") or {}):
            yield f"LimitRange {name}: refuses limits that are a multiple of the request"


def _millis(quantity: object) -> int:
    """Return the millicores of *quantity*. 0 for a negative one, which the API server takes too."""
    try:
        return cpu_millis(quantity)
    except InputError:
        return 0


def _as_table(standings: Iterable[NamespaceStanding]) -> str:
    rows = [
        (
            standing.namespace,
            "yes" if standing.is_labelled else "no",
            str(standing.pods),
            str(standing.lowered),
            f"{standing.freed_millis}m",
            "; ".join(standing.findings) or "-",
        )
        for standing in standings
    ]
    if not rows:
        return f"No namespace is labelled {CHOICE}={ENABLED}, and no pod runs lowered."
    return "\n".join(columns(HEADINGS, rows))


def _as_json(standings: Iterable[NamespaceStanding]) -> str:
    rows = [
        {
            "namespace": standing.namespace,
            "is_labelled": standing.is_labelled,
            "pods": standing.pods,
            "lowered": standing.lowered,
            "freed_millis": standing.freed_millis,
            "findings": standing.findings,
        }
        for standing in standings
    ]
    return document_text(rows)
