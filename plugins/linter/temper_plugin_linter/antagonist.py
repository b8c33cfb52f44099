"""``antagonist``: threads that ran while a protected thread waited for a CPU."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from temper_core import Blocking, Finding, Party, ThreadSample, WakeWindow
from temper_plugin_linter.names import (
    busiest,
    by_subject,
    kind_of,
    owner_name,
    owner_of,
    thread_name,
)
from temper_plugin_linter.placement import REAL_TIME, Placement, cpu_used, pod_key

FIX = (
    "move the one named to a lower tier, or give the pod that waits whole cores (a higher tier, a "
    "larger request, an exclusive thread group)"
)


@frozen
class _Wait:
    """The wait of one subject's threads behind others in one watched window."""

    waited_s: float
    worst: Blocking


@frozen
class _Guess:
    """The threads that may have kept another waiting, and for which share of the window."""

    runners: list[ThreadSample]
    blamed: float


def antagonist(placement: Placement) -> Iterator[Finding]:
    """Report threads of other pods that ran while protected threads waited.

    If wake-ups are watched, the wait must exceed the limit in both of the last two watched windows.
    Otherwise the runners are inferred from the use of the CPU on which the thread was sampled.
    """
    if not placement.is_judged:
        return
    last, before = placement.wakes, placement.past.wakes
    if last is not None and before is not None:
        yield from _watched(placement, last, before)
    else:
        yield from _inferred(placement)


def _watched(placement: Placement, last: WakeWindow, before: WakeWindow) -> Iterator[Finding]:
    limit = placement.limits.antagonist_ratio
    earlier = _waits(placement, before)
    for subject, wait in _waits(placement, last).items():
        ratio = wait.waited_s / last.length_s
        previous = earlier.get(subject)
        if previous is None or min(ratio, previous.waited_s / before.length_s) < limit:
            continue
        yield Finding(
            subject,
            f"waited {ratio:.0%} of a watched window for CPUs that others used, mostly "
            f"{_party_name(wait.worst.runner)} ({wait.worst.waited_s * 1000:.1f} ms in "
            f"{wait.worst.waits} waits)",
            FIX,
            {
                "runner": _party_name(wait.worst.runner),
                "waited_ratio": ratio,
                "waits": wait.worst.waits,
                "window_s": last.length_s,
                "limit": limit,
            },
        )


def _waits(placement: Placement, window: WakeWindow) -> Mapping[str, _Wait]:
    """Return the waits of protected threads behind others, the worst thread of each subject."""
    behind: defaultdict[tuple[str, int], list[Blocking]] = defaultdict(list)
    layers = {thread.tid: thread.layer for thread in placement.snapshot.threads}
    for blocking in window.blockings:
        waiter = blocking.waiter
        layer = waiter.layer or layers.get(waiter.tid, "")
        if layer in placement.facts.protected and not _is_own(blocking):
            subject = kind_of(waiter.pod, waiter.process, waiter.comm)
            behind[subject, waiter.tid].append(blocking)
    worst: dict[str, _Wait] = {}
    for (subject, _), blockings in behind.items():
        waited_s = sum(blocking.waited_s for blocking in blockings)
        if subject not in worst or waited_s > worst[subject].waited_s:
            longest = max(blockings, key=lambda blocking: blocking.waited_s)
            worst[subject] = _Wait(waited_s, longest)
    return worst


def _is_own(blocking: Blocking) -> bool:
    waiter, runner = blocking.waiter, blocking.runner
    if waiter.pod or runner.pod:
        return waiter.pod == runner.pod
    return waiter.process == runner.process


def _inferred(placement: Placement) -> Iterator[Finding]:
    limit = placement.limits.antagonist_ratio
    victims = [
        thread
        for thread in placement.threads.waiting
        if thread.layer in placement.facts.protected
        and thread.run_delay_ratio >= limit
        and thread.policy not in REAL_TIME
    ]
    for subject, threads in by_subject(victims).items():
        for thread in sorted(threads, key=lambda thread: -thread.run_delay_ratio):
            guess = _guess(thread, placement.by_cpu.get(thread.cpu, ()))
            if guess.blamed >= limit:
                yield _finding(subject, thread, guess, limit)
                break


def _guess(thread: ThreadSample, on_cpu: Iterable[ThreadSample]) -> _Guess:
    """Attribute the thread's wait to the users of its CPU, its own pod in proportion."""
    own, own_used, others = owner_name(thread), 0.0, []
    for other in on_cpu:
        if owner_name(other) != own:
            others.append(other)
        elif other is not thread:
            own_used += other.cpu_used
    foreign = cpu_used(others)
    if foreign == 0.0:
        return _Guess([], 0.0)
    # The others cannot have kept it waiting for much longer than they used the CPU.
    blamed = min(thread.run_delay_ratio * foreign / (foreign + own_used), 2 * foreign)
    return _Guess(others, blamed)


def _finding(subject: str, thread: ThreadSample, guess: _Guess, limit: float) -> Finding:
    runners = guess.runners
    runner = max(runners, key=lambda runner: runner.cpu_used)
    return Finding(
        subject,
        f"{thread.comm}[{thread.tid}] waited {thread.run_delay_ratio:.0%} of the window; its CPU "
        f"{thread.cpu} was used by {busiest(runners)} (inferred: seen there, not watched)",
        FIX,
        {
            "runner": thread_name(runner),
            "runner_cpu_used": runner.cpu_used,
            "waited_ratio": thread.run_delay_ratio,
            "blamed_ratio": guess.blamed,
            "cpu": thread.cpu,
            "pod": pod_key(thread),
            "limit": limit,
            "inferred": 1,
        },
        owner_of(thread),
    )


def _party_name(party: Party) -> str:
    return f"{party.pod} {party.comm}[{party.tid}]".lstrip()
