"""Observes the threads of a program for some seconds, and makes a bundle of them."""

import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from temper_core import MachineError
from temper_core.console import is_interrupted
from temper_plugin_trainer.process_trees import ProcessSource
from temper_plugin_trainer.recording import UNKNOWN, drafted_table
from temper_plugin_trainer.sampling import (
    NS_PER_S,
    SampledInterval,
    SeenThread,
    ThreadCounters,
    ThreadSampler,
)
from temper_plugin_trainer.thread_tables import LONGEST_COMM, LONGEST_TITLE, ThreadTable
from temper_plugin_trainer.training.agent_watch import AgentWatch, inside
from temper_plugin_trainer.training.bundles import (
    LONGEST_REASON,
    MOST_FUNCTIONS,
    MOST_INTERVALS,
    MOST_THREADS,
    Bundle,
    BundleAgent,
    BundleInterval,
    BundleThread,
)
from temper_plugin_trainer.training.load_verdict import ObservedLoad, load_problems

LOOK_EVERY_S = 0.25
MOST_LOOKING = 0.05
"""Share of one core that sampling may take. Samples of many threads come less often."""
NOT_ASKED = "not asked"
"""The reason of an observation that asks no agent."""
DIGITS = 6


@frozen
class Observed:
    """An observation: the sampler, with the seconds asked for, and how the observation ended."""

    sampler: ThreadSampler
    asked_s: float
    is_interrupted: bool

    @property
    def load(self) -> ObservedLoad:
        """The totals for the verdict on the load."""
        sampler = self.sampler
        return ObservedLoad(
            sampler.intervals,
            self.asked_s,
            sampler.unseen_cpus,
            self.is_interrupted,
            sampler.is_over,
        )


def observed(
    source: ProcessSource, seconds: float, tell: Callable[[SampledInterval, float], None]
) -> Observed:
    """Sample the threads of *source* for *seconds*, or until it ends or an interruption comes.

    *tell* gets every interval and the seconds since the start. Interruptions have to be held back
    (``held_interruptions``). Raises MachineError if the kernel keeps no counters of threads.
    """
    sampler = ThreadSampler(source, host=platform.node(), sleeps=True)
    every_s = max(LOOK_EVERY_S, seconds / (MOST_INTERVALS - 1))
    is_ended = False
    try:
        ends_at = time.monotonic() + seconds
        took_s = _timed(sampler.look)
        while not (is_ended or sampler.is_over) and (left_s := ends_at - time.monotonic()) > 0:
            pause_s = max(every_s, took_s / MOST_LOOKING)
            is_ended = is_interrupted(min(pause_s, left_s))
            took_s = _timed(sampler.look)
            tell(sampler.intervals[-1], sampler.seconds)
    finally:
        sampler.close()
    return Observed(sampler, seconds, is_ended)


def made_bundle(machine: Any, result: Observed, agent: AgentWatch | None) -> Bundle:  # noqa: ANN401 - the core's
    """Make a bundle of *result*, and end *agent*. Raise MachineError if no thread was seen."""
    sampler = result.sampler
    seen = sorted(sampler.seen(), key=lambda thread: -thread.used.run_ns)
    if not seen:
        raise MachineError("nothing was observed: no thread lived from one sample to the next")
    kept, left_out = seen[:MOST_THREADS], seen[MOST_THREADS:]
    asked = (
        agent.finish(inside({thread.tid for thread in seen})) if agent else BundleAgent(NOT_ASKED)
    )
    draft: ThreadTable = drafted_table(machine, program="", version=UNKNOWN, command=UNKNOWN)
    return Bundle(
        program=_program_of(seen),
        machine=draft.machine,
        kernel=draft.kernel,
        date=draft.date,
        seconds=round(sampler.seconds, DIGITS),
        intervals=tuple(map(_interval, sampler.intervals)),
        threads=tuple(map(_thread, kept)),
        agent=asked,
        problems=tuple(problem[:LONGEST_REASON] for problem in load_problems(result.load)),
        unseen_cpus=round(sampler.unseen_cpus, DIGITS),
        left_out=len(left_out),
        left_out_cpus=round(_run_s(left_out) / sampler.seconds, DIGITS),
    )


def _timed(work: Callable[[], None]) -> float:
    """Return the CPU time of *work* in seconds. A wait for a CPU takes none."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def _program_of(seen: Sequence[SeenThread]) -> str:
    return seen[0].process[:LONGEST_COMM]


def _run_s(threads: Sequence[SeenThread]) -> float:
    return sum(thread.used.run_ns for thread in threads) / NS_PER_S


def _interval(interval: SampledInterval) -> BundleInterval:
    run_s, wait_s = _seconds(interval.used)
    seconds = max(1e-6, round(interval.seconds, DIGITS))
    return BundleInterval(seconds, run_s, wait_s, interval.used.sleeps, interval.threads)


def _seconds(used: ThreadCounters) -> tuple[float, float]:
    return round(used.run_ns / NS_PER_S, DIGITS), round(used.delay_ns / NS_PER_S, DIGITS)


def _thread(seen: SeenThread) -> BundleThread:
    run_s, wait_s = _seconds(seen.used)
    functions = sorted(seen.sleeps_in.items(), key=lambda item: -item[1])[:MOST_FUNCTIONS]
    return BundleThread(
        tid=seen.tid,
        pid=seen.pid,
        comm=seen.comm[:LONGEST_COMM],
        process=seen.process[:LONGEST_COMM],
        lived_s=max(1e-6, round(seen.lived_s, DIGITS)),
        run_s=run_s,
        wait_s=wait_s,
        runs=seen.used.runs,
        sleeps=seen.used.sleeps,
        preemptions=seen.used.preemptions,
        peak=round(seen.peak, DIGITS),
        sleeps_in=dict(functions),
        names=tuple(name[:LONGEST_COMM] for name in seen.names)[:64],
        title=seen.title[:LONGEST_TITLE],
        leader=seen.leader,
        container=seen.container,
        exe=seen.origin.exe,
        parent=seen.origin.parent[:LONGEST_COMM],
        child=seen.origin.is_child,
        age_s=round(seen.age_s, 3),
    )
