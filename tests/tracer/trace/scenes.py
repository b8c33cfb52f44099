"""Small scenes of scheduler events, told one event a line."""

import numpy as np

from temper_plugin_tracer.trace.analysis.analyzer import Analyzer
from temper_plugin_tracer.trace.analysis.pairs import CODE_BITS
from temper_plugin_tracer.trace.events import PREEMPTED, SCHED_EVENT, Kind

SLEEPS = 1
IDLE_PRIO = 120


def switch(ns, cpu, prev, following, state=SLEEPS, prio=IDLE_PRIO):
    return (ns, prev, following, 0, cpu, cpu, state, prio, Kind.SWITCH, 0, 0)


def flagged(event, flags):
    return (*event[:-2], flags, 0)


def preempt(ns, cpu, prev, following, prio=IDLE_PRIO):
    return switch(ns, cpu, prev, following, PREEMPTED, prio)


def throttle(ns, cpu, prev, following):
    return flagged(switch(ns, cpu, prev, following, 0), 1)


def wake(ns, waker, woken, target, cpu=0, flags=0):
    return (ns, waker, woken, 0, cpu, target, 0, IDLE_PRIO, Kind.WAKING, flags, 0)


def move(ns, tid, source, target):
    return (ns, source, tid, 0, source, target, 0, IDLE_PRIO, Kind.MIGRATION, 0, 0)


def handler(ns, cpu, kind, number):
    return (ns, 0, number, 0, cpu, cpu, 0, 0, kind, 0, 0)


def events(*rows):
    return np.array(list(rows), SCHED_EVENT)


def blocks_of(block, size):
    return [block[begin : begin + size] for begin in range(0, len(block), size)]


def analyzed(block, known=None, size=1 << 16, slowest=20):
    analyzer = Analyzer(known, slowest)
    for part in blocks_of(block, size):
        analyzer.add(part)
    return analyzer


def pairs_by_tid(analyzer, sums):
    keys, values = sums.all()
    return {
        (int(analyzer.threads.tids[key >> CODE_BITS]), key & ((1 << CODE_BITS) - 1)): value
        for key, value in zip(keys.tolist(), values.tolist(), strict=True)
    }
