"""The slowest wake-ups of the threads of some subjects, by a reading of its own.

A trace as text names its threads only when all of it has been read. So its subjects are known in
a second reading.
"""

from collections.abc import Callable

from temper_plugin_tracer.trace.analysis.analyzer import WakeAnalyzer
from temper_plugin_tracer.trace.analysis.names import Names, Subjects
from temper_plugin_tracer.trace.analysis.report import SlowWakeUp
from temper_plugin_tracer.trace.analysis.slow_wake_ups import slow_wake_ups
from temper_plugin_tracer.trace.analyzing import known_of
from temper_plugin_tracer.trace.reading import Trace

__all__ = ["slowest_of"]


def slowest_of(
    trace: Trace, level: str, of: str, most: int, listener: Callable[[int], None]
) -> tuple[SlowWakeUp, ...]:
    """Return the *most* slowest wake-ups of subjects of *level* with *of* in their name.

    *trace* has been read once. *listener* is called with the number of events so far. Raises
    InputError if the trace cannot be read.
    """
    threads = tuple(trace.threads)
    subjects = Subjects(threads)
    analyzer = WakeAnalyzer(known_of(trace), most, lambda tid: of in subjects.of(tid, level))
    for block in trace.blocks():
        analyzer.add(block)
        listener(analyzer.events)
    return slow_wake_ups(analyzer, Names(threads, analyzer.threads), most)
