"""The report of a fleet: advice for each container of a workload, as JSON."""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import asdict, evolve

from temper_core import InputError, rfc3339
from temper_plugin_rightsizer.advice.advising import advise, confidence
from temper_plugin_rightsizer.advice.cpu import arithmetic, cpus, round_up
from temper_plugin_rightsizer.advice.leaks import leak_of
from temper_plugin_rightsizer.advice.options import USUAL, AdviceOptions
from temper_plugin_rightsizer.advice.pods import with_pod_bounds
from temper_plugin_rightsizer.advice.quotas import with_quotas
from temper_plugin_rightsizer.advice.records import Advice, Resources, Verdict
from temper_plugin_rightsizer.advice.surroundings import consider
from temper_plugin_rightsizer.advice.use import REALIZED, used
from temper_plugin_rightsizer.fleet.batch import Exporters
from temper_plugin_rightsizer.fleet.demands import FleetDemand, Key
from temper_plugin_rightsizer.fleet.queries import CONTAINERS, STARTED, THREADS
from temper_plugin_rightsizer.fleet.reading import Fleet
from temper_plugin_rightsizer.fleet.surroundings import NOT_KNOWN
from temper_plugin_rightsizer.node.document import SCHEMA_VERSION

SOURCE = "prometheus"
MOSTLY = 0.9
"""A share of the time from which on the rest is not worth a word."""


def report(fleet: Fleet, options: AdviceOptions = USUAL) -> Mapping[str, Any]:
    """Return advice for all containers of *fleet*, and what the server cannot know.

    Raises InputError or MachineError for what the server answers.
    """
    exporters = fleet.exporters()
    notes = _notes(exporters, fleet.clusters(exporters))
    rows = [
        _row(key, found, fleet.window.step_s, options)
        for demands in fleet.demands(exporters)
        for key, found in demands.items()
        if found.demand.seconds
    ]
    if not rows:
        raise InputError(
            f"no container has two samples within {fleet.window.rate_s} s; give a --step that is "
            "not shorter than the scrape interval"
        )
    warnings = [f"the server warns: {warning}" for warning in fleet.prometheus.warnings]
    return {
        "schema_version": SCHEMA_VERSION,
        "source": SOURCE,
        "at": rfc3339(fleet.window.end),
        "window_s": fleet.window.seconds,
        "step_s": fleet.window.step_s,
        "options": asdict(options),
        "notes": [*notes, *warnings],
        "containers": with_quotas(
            with_pod_bounds(sorted(rows, key=_place), fleet.pod_bounds), fleet.quotas
        ),
    }


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["namespace"], row["owner"], row["container"]


def _notes(exporters: Exporters, clusters: int) -> Iterable[str]:
    if exporters.threads is None:
        yield f"no {THREADS}: whether a thread is hot is not known without agents"
    if not exporters.knows_starts:
        yield f"no {STARTED}: the use of a start-up is not told apart"
    if exporters.state is None:
        yield f"no {CONTAINERS}: owners, requests, limits, HPAs and quotas are not known"
    yield NOT_KNOWN
    if clusters > 1:
        yield (
            f"{clusters} clusters: workloads of the same name are merged; choose one by "
            "--selector cluster=NAME"
        )


def _row(key: Key, found: FleetDemand, step_s: int, options: AdviceOptions) -> dict[str, Any]:
    workload, container = key
    around = found.around
    if found.current is None:
        # Whether an autoscaler has a request to scale by is then not known.
        around = evolve(around, autoscalers=())
    advice = consider(fleet_advice(found, step_s, options), around)
    return {
        "namespace": workload.namespace,
        "pod": workload.name if workload.kind == "Pod" else "",
        "owner": workload.owner,
        "container": container,
        "container_kind": found.around.kind,
        "replicas": len(found.living or found.replicas),
        **asdict(advice),
        "degraded": is_degraded(found, options),
        "not_known": list(_not_known(found)),
        "used": _used(found, options),
    }


def _used(found: FleetDemand, options: AdviceOptions) -> Mapping[str, Any]:
    """Return the use. Realized savings are not known, as only agents measure them."""
    figures = used(found.demand, options, idle=None)
    return {name: figure for name, figure in figures.items() if name not in REALIZED}


def fleet_advice(found: FleetDemand, step_s: int, options: AdviceOptions = USUAL) -> Advice:
    """Return advice for one container of a workload, with what is not known among the reasons.

    The measured time is that of the window in which any replica was measured.
    """
    leak, told = leak_of(found.growths())
    advice = advise(found.demand, found.current or Resources(), options, leak)
    learned_s = found.covered.bit_count() * step_s
    reasons = [*advice.reasons, *told]
    if not found.judged().ranks:
        reasons[0] = _without_threads(found, options)
    reasons[1:1] = _limits_of_knowledge(found, advice, options)
    return evolve(
        advice, learned_s=learned_s, confidence=confidence(learned_s), reasons=tuple(reasons)
    )


def is_degraded(found: FleetDemand, options: AdviceOptions = USUAL) -> bool:
    """Return whether an unmeasured thread may be hot.

    A thread does not use more than its container. So none is hot in a container that is idle.
    """
    demand = found.judged()
    return not demand.ranks and demand.cpu.percentile(options.percentile) >= options.hot


def _without_threads(found: FleetDemand, options: AdviceOptions) -> str:
    """Return the reason of the CPU request of a container whose threads are not known."""
    used = found.judged().cpu.percentile(options.percentile)
    threads = (
        "no thread data, so a hot thread is not known"
        if is_degraded(found, options)
        else f"so no thread is hot ({options.hot:g})"
    )
    request_millis = round_up(options.margin * used * 1000)
    return (
        f"P{options.percentile * 100:g} of the container is {cpus(used)} CPUs, {threads}: "
        f"{arithmetic(used, request_millis, options)}"
    )


def _limits_of_knowledge(
    found: FleetDemand, advice: Advice, options: AdviceOptions
) -> Iterable[str]:
    demand = found.judged()
    if demand.ranks:
        watched, measured = len(found.watched), len(found.replicas)
        if watched < measured:
            yield f"threads are known of {watched} of {measured} replicas"
        elif (share := found.threads_share()) < MOSTLY:
            yield f"threads are known in {share:.0%} of the measured time"
        rest = demand.rests[0].percentile(options.percentile)
        if advice.verdict is Verdict.EXCLUSIVE and rest >= options.hot:
            yield f"only the busiest thread is known: the rest of {rest:.2f} may have a hot one too"
    if found.current is None:
        yield "requests and limits are not known"


def _not_known(found: FleetDemand) -> Iterable[str]:
    if not found.judged().ranks:
        yield "threads"
    if found.current is None:
        yield "resources"
