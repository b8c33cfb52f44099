"""Reads a trace and analyses it."""

from collections.abc import Callable, Mapping, Sequence

from temper_plugin_tracer.trace.analysis.analyzer import USUAL_SLOWEST, Analyzer
from temper_plugin_tracer.trace.analysis.known import Known
from temper_plugin_tracer.trace.analysis.report import Report
from temper_plugin_tracer.trace.analysis.reporting import Wanted, report_of
from temper_plugin_tracer.trace.reading import Trace

__all__ = ["analyze", "known_of"]


def analyze(
    trace: Trace,
    *,
    rows: int = 20,
    slowest: int = USUAL_SLOWEST,
    of: str = "",
    listener: Callable[[int], None] | None = None,
) -> Report:
    """Read *trace* and return its report. *listener* is called with the number of events so far.

    Raises:
        InputError: if the trace cannot be read.

    """
    known = known_of(trace)
    analyzer = Analyzer(known, slowest)
    for block in trace.blocks():
        analyzer.add(block)
        if listener is not None:
            listener(analyzer.events)
    knows_throttling = trace.facts is not None and trace.facts.tells_throttling
    is_all = known.selected is None and known.recorded is None
    knows_siblings = bool(known.cores) and is_all
    wanted = Wanted(rows, of, knows_siblings, bool(known.planned), knows_throttling)
    return report_of(analyzer, trace.threads, wanted, _lost(trace))


def known_of(trace: Trace) -> Known:
    """Return the facts of *trace* beside its events."""
    cores: Mapping[int, int] = getattr(trace.machine, "cores", None) or {}
    planned = getattr(trace.facts, "planned", None) or {}
    return Known(
        cores=_by_core(cores),
        planned={layer: frozenset(cpus) for layer, cpus in planned.items()},
        layers={thread.tid: thread.layer for thread in trace.threads if thread.layer},
        selected=frozenset(thread.tid for thread in trace.threads if thread.is_selected) or None,
        recorded=frozenset(getattr(trace.facts, "cpus", ())) or None,
    )


def _by_core(core_of: Mapping[int, int]) -> Sequence[Sequence[int]]:
    cores: dict[int, list[int]] = {}
    for cpu, core in sorted(core_of.items()):
        cores.setdefault(core, []).append(cpu)
    return [tuple(cpus) for cpus in cores.values()]


def _lost(trace: Trace) -> Mapping[int, int]:
    if trace.facts is not None:
        return trace.facts.lost
    losses: Mapping[int, int] = getattr(trace, "losses", {})
    return losses
