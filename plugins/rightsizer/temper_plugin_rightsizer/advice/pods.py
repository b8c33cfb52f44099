"""The bounds of LimitRanges on whole pods (type ``Pod``)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from temper_plugin_rightsizer.advice.cpu import cores
from temper_plugin_rightsizer.advice.memory import mib
from temper_plugin_rightsizer.advice.quotas import Show
from temper_plugin_rightsizer.advice.records import KEEP
from temper_plugin_rightsizer.advice.surroundings import Bounds, ContainerKind, Range

Row = dict[str, Any]


def with_pod_bounds(containers: Iterable[Row], bounds: Mapping[str, Bounds]) -> list[Row]:
    """Return the rows of a report whose pods keep the *bounds* of their namespaces.

    If the advice for the containers of a workload does not fit together, their requests and
    limits of that resource stay as they are: the API server has admitted them. Containers without a
    row are not known, and count nothing.
    """
    listed = list(containers)
    pods: dict[tuple[str, str], list[Row]] = {}
    for row in listed:
        if row["namespace"] in bounds and row["container_kind"] != ContainerKind.INIT:
            pods.setdefault((row["namespace"], row["owner"] or row["pod"]), []).append(row)
    for (namespace, _), rows in pods.items():
        _keep_bounds(rows, "cpu_{}_millis", bounds[namespace].cpu, cores)
        _keep_bounds(rows, "memory_{}_bytes", bounds[namespace].memory, mib)
    return listed


def _keep_bounds(rows: Sequence[Row], resource: str, allowed: Range, show: Show) -> None:
    requests, limits = resource.format("request"), resource.format("limit")
    request, limit = (_sum(rows, "recommended", name) for name in (requests, limits))
    told = _misfit(request, limit, allowed, show)
    if not told:
        return
    words = resource.partition("_")[0].replace("cpu", "CPU")
    for row in rows:
        wanted, current = row["recommended"], row["current"]
        if all(wanted[name] == current[name] for name in (requests, limits)):
            continue
        row["recommended"] = {**wanted, **{name: current[name] for name in (requests, limits)}}
        row["keeps"] = row["recommended"] == current
        reason = f"{told}: the {words} requests and limits of its pods stay as they are"
        kept = [each for each in row["reasons"] if each != KEEP]
        row["reasons"] = [*kept, reason, *([KEEP] if row["keeps"] else [])]


def _sum(rows: Sequence[Row], key: str, name: str) -> int:
    return sum(row[key][name] or 0 for row in rows)


def _misfit(request: int, limit: int, allowed: Range, show: Show) -> str:
    """Return which bound the sums break, empty if none.

    The API server compares both sums with the bounds (plugin/pkg/admission/limitranger).
    """
    if allowed.least is not None and request < allowed.least:
        return (
            f"the LimitRange wants {show(allowed.least)} for a pod, and {show(request)} is advised"
        )
    largest = max(request, limit)
    if allowed.most is not None and largest > allowed.most:
        return (
            f"the LimitRange allows {show(allowed.most)} for a pod, and {show(largest)} is advised"
        )
    if allowed.ratio and request and limit > allowed.ratio * request:
        return (
            f"the LimitRange allows limits of {allowed.ratio:g} x the requests of a pod, and "
            f"{limit / request:.3g} x is advised"
        )
    return ""
