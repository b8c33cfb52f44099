"""The slowest wake-ups of an analysis, with names."""

from temper_plugin_tracer.trace.analysis.analyzer import WakeAnalyzer
from temper_plugin_tracer.trace.analysis.names import Names
from temper_plugin_tracer.trace.analysis.report import Link, SlowWakeUp
from temper_plugin_tracer.trace.analysis.shares import shares_of
from temper_plugin_tracer.trace.analysis.slowest import SlowWake

__all__ = ["slow_wake_ups"]


def slow_wake_ups(analyzer: WakeAnalyzer, names: Names, most: int) -> tuple[SlowWakeUp, ...]:
    """Return the slowest wake-ups, slowest first, with *most* parties each."""
    begin_ns = analyzer.begin_ns or 0
    return tuple(
        _named(wake, int(analyzer.threads.tids[wake.row]), begin_ns, names, most)
        for wake in analyzer.slowest.all()
    )


def _named(wake: SlowWake, tid: int, begin_ns: int, names: Names, most: int) -> SlowWakeUp:
    name = names.of(tid, "thread")
    chain, woken = [], name
    for waker_tid, ns, wait_ns in wake.links:
        waker = names.waker(waker_tid)
        chain.append(Link(waker, woken, ns - begin_ns, wait_ns if wait_ns >= 0 else None))
        woken = waker
    blockers = shares_of(names, dict(wake.parties), "thread", [tid], most)
    return SlowWakeUp(name, wake.began_ns - begin_ns, wake.ns, wake.cpu, blockers, tuple(chain))
