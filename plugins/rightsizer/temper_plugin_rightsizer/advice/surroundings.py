"""The other limits of a container's requests, and the advice within them."""

from collections.abc import Iterator
from enum import StrEnum

from attrs import evolve, field, frozen

from temper_plugin_rightsizer.advice.cpu import cores, round_up
from temper_plugin_rightsizer.advice.memory import mib, round_up_mib
from temper_plugin_rightsizer.advice.records import KEEP, Advice, Resources

LEAST_TARGET, MOST_TARGET = 1, 100
"""Per cent of the request that a HorizontalPodAutoscaler can sensibly aim at."""


class ContainerKind(StrEnum):
    """How a container runs in its pod."""

    APP = "app"
    INIT = "init"
    SIDECAR = "sidecar"


@frozen
class Autoscaler:
    """A HorizontalPodAutoscaler of a workload.

    ``cpu_percent`` and ``memory_percent`` are the use of the request that it aims at. None if it
    does not scale by that.
    """

    name: str
    cpu_percent: int | None = None
    memory_percent: int | None = None


@frozen
class Range:
    """The least and the most that is allowed, in millicores or bytes. None without a bound.

    ``ratio`` is how often a limit may be the request (``maxLimitRequestRatio``).
    """

    least: int | None = None
    most: int | None = None
    ratio: float | None = None


@frozen
class Bounds:
    """The bounds of a namespace's LimitRanges on a container, or on all of a pod together."""

    cpu: Range = Range()
    memory: Range = Range()


@frozen
class Surroundings:
    """The surroundings of one container of a workload.

    ``owner_kind`` is that of the workload. ``updater`` is a VerticalPodAutoscaler that sets the
    requests, with its mode. ``resize`` is how an in-place resize is possible, empty if it is not or
    is not known. ``is_guaranteed`` is whether its pods have the QoS class Guaranteed.
    """

    owner_kind: str = ""
    kind: ContainerKind = ContainerKind.APP
    autoscalers: tuple[Autoscaler, ...] = ()
    updater: str = ""
    observer: str = ""
    bounds: Bounds = field(default=Bounds())
    resize: str = ""
    is_guaranteed: bool = False


OF_KIND = {
    "Job": "a Job: its template cannot change, so the advice is for the next one",
    "CronJob": "a CronJob: by the time in which its Jobs ran. The next one takes the advice",
    "StatefulSet": "a StatefulSet: a changed template restarts its pods one by one, from the last",
    "Pod": "a pod without a controller: it has no template to change",
}
OF_CONTAINER = {
    ContainerKind.INIT: (
        "an init container: it runs before the others, so a pod requests the larger of it and of "
        "their sum"
    ),
    ContainerKind.SIDECAR: "a native sidecar: its request adds to that of the other containers",
}


def consider(advice: Advice, around: Surroundings) -> Advice:
    """Return *advice* as it is with what is *around* the container, with the reasons."""
    recommended, told = advice.recommended, []
    for autoscaler in around.autoscalers:
        recommended, reasons = _scaled(advice.current, recommended, autoscaler)
        told += reasons
    recommended, reasons = _bounded(recommended, around.bounds)
    told += reasons
    keeps = recommended == advice.current
    if around.updater:
        told.append(f"{around.updater} sets the requests itself: no patch is written beside it")
    if around.observer:
        told.append(f"{around.observer} exists, and sets nothing")
    if around.kind in OF_CONTAINER:
        told.append(OF_CONTAINER[around.kind])
    if not keeps:
        told += _ways(recommended, around)
    kept = tuple(reason for reason in advice.reasons if reason != KEEP)
    return evolve(
        advice,
        recommended=recommended,
        keeps=keeps,
        reasons=(*kept, *told, *((KEEP,) if keeps else ())),
    )


def _scaled(
    current: Resources, wanted: Resources, autoscaler: Autoscaler
) -> tuple[Resources, list[str]]:
    """Keep the requests that the number of replicas follows from."""
    told = []
    for field_name, percent, words, show in (
        ("cpu_request_millis", autoscaler.cpu_percent, "CPU", cores),
        ("memory_request_bytes", autoscaler.memory_percent, "memory", mib),
    ):
        if percent is None:
            continue
        aim = f"{autoscaler.name} aims at {percent} % of the {words} request"
        now, advised = getattr(current, field_name), getattr(wanted, field_name)
        if not now:
            told.append(f"{aim}, and there is none: it cannot scale")
            continue
        told.append(f"{aim}: the request stays, as the number of replicas follows from it")
        if advised and advised != now:
            told.append(_other_target(percent * now / advised, show(advised)))
        wanted = evolve(wanted, **{field_name: now})
    if not told:
        told.append(f"{autoscaler.name} does not scale by use of a request: both go together")
    return wanted, told


def _other_target(percent: float, wanted: str) -> str:
    """Return what the target would be with the request *wanted* and as many replicas."""
    told = f"with {wanted} the same number of replicas needs a target of {percent:.0f} %"
    if LEAST_TARGET <= percent <= MOST_TARGET:
        return told
    return f"{told}, which is no useful one"


def _bounded(wanted: Resources, bounds: Bounds) -> tuple[Resources, list[str]]:
    """Return *wanted* within *bounds*."""
    changes: dict[str, int] = {}
    told = []
    for name, allowed, show in (
        ("cpu_request_millis", bounds.cpu, cores),
        ("cpu_limit_millis", bounds.cpu, cores),
        ("memory_request_bytes", bounds.memory, mib),
        ("memory_limit_bytes", bounds.memory, mib),
    ):
        amount = getattr(wanted, name)
        if amount is None:
            continue
        within = _within(amount, allowed)
        if within != amount:
            what = name.rpartition("_")[0].replace("_", " ").replace("cpu", "CPU")
            bound = "at least" if within > amount else "at most"
            told.append(
                f"the LimitRange allows {bound} {show(within)} in place of {show(amount)}: "
                f"the {what} is {show(within)}"
            )
            changes[name] = within
    wanted = evolve(wanted, **changes)
    return _within_ratios(wanted, bounds, told), told


def _within_ratios(wanted: Resources, bounds: Bounds, told: list[str]) -> Resources:
    """Raise requests whose limit is too many times as large. A lower limit would throttle or kill.

    *told* gets the reasons.
    """
    for resource, ratio, step, show in (
        ("cpu_{}_millis", bounds.cpu.ratio, round_up, cores),
        ("memory_{}_bytes", bounds.memory.ratio, round_up_mib, mib),
    ):
        request, limit = (getattr(wanted, resource.format(each)) for each in ("request", "limit"))
        if ratio and request and limit and limit > ratio * request:
            raised = min(step(limit / ratio), limit)
            name = resource.partition("_")[0].replace("cpu", "CPU")
            told.append(
                f"the LimitRange allows a {name} limit of at most {ratio:g} x the request: with "
                f"the limit {show(limit)} the {name} request is {show(raised)} in place of "
                f"{show(request)}"
            )
            wanted = evolve(wanted, **{resource.format("request"): raised})
    return wanted


def _within(amount: int, allowed: Range) -> int:
    if allowed.most is not None and amount > allowed.most:
        return allowed.most
    if allowed.least is not None and amount < allowed.least:
        return allowed.least
    return amount


def _ways(wanted: Resources, around: Surroundings) -> Iterator[str]:
    """Yield what a change of the workload means."""
    if around.owner_kind in OF_KIND:
        yield OF_KIND[around.owner_kind]
    if around.resize and around.kind is not ContainerKind.INIT:
        if around.is_guaranteed and not _is_guaranteed(wanted):
            yield "no in-place resize: it cannot change the QoS class from Guaranteed"
        else:
            yield f"an in-place resize of its pods is possible {around.resize}"
    elif around.is_guaranteed and not _is_guaranteed(wanted):
        yield "the QoS class of its pods changes from Guaranteed"


def _is_guaranteed(amounts: Resources) -> bool:
    return (
        amounts.cpu_request_millis == amounts.cpu_limit_millis is not None
        and amounts.memory_request_bytes == amounts.memory_limit_bytes is not None
    )
