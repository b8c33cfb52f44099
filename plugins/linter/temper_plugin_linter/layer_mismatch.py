"""``layer_mismatch``: every thread is in the layer of its plan."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from temper_core import Finding, ThreadSample
from temper_plugin_linter.names import busiest, inferred, owner_name
from temper_plugin_linter.placement import REAL_TIME, Placement, cpu_used

FOLLOWS_LATE = (
    "the engine reads a thread's name and cgroup again only when it wakes up: renice a thread that "
    "never sleeps by +1 and back; if that does not help, compare 'temper explain' with the "
    "thread's cgroup"
)
NOT_HINTED = (
    "Temper's hints name another layer for these threads: see 'steering' in 'temper observe' for "
    "missing scopes and failing walks"
)


def layer_mismatch(placement: Placement) -> Iterator[Finding]:
    """Find threads in another layer than the plan's, one finding per pod and planned layer.

    Plan, hint and the engine's own record of the thread are compared if they are known. Threads
    younger than ``settle_windows`` may not have moved yet. Kernel threads are not placed by Temper,
    and real-time threads are not scheduled by the engine.
    """
    if not placement.is_judged:
        return
    yield from _missing(placement)
    strays: defaultdict[tuple[str, str], list[ThreadSample]] = defaultdict(list)
    for thread in placement.threads.astray:
        if _is_judged(thread, placement):
            strays[owner_name(thread), thread.expected_layer].append(thread)
    for (owner, planned), threads in strays.items():
        yield _finding(owner, planned, threads, _belonging(owner, planned, placement))


def _is_judged(thread: ThreadSample, placement: Placement) -> bool:
    settled_s = placement.limits.settle_windows * placement.snapshot.window_s
    return bool(
        thread.layer
        and thread.expected_layer
        and thread.age_s > settled_s
        and not thread.is_kthread
        and thread.policy not in REAL_TIME
    )


def _belonging(owner: str, planned: str, placement: Placement) -> int:
    """Return the number of threads of *owner* that ran and belong in layer *planned*."""
    return sum(
        thread.expected_layer == planned
        and owner_name(thread) == owner
        and _is_judged(thread, placement)
        for thread in placement.snapshot.threads
    )


def _missing(placement: Placement) -> Iterator[Finding]:
    """Find layers for which the engine counts fewer threads than ran and belong there.

    This check replaces the engine's record of single threads where layers are only inferred.
    """
    belonging: Counter[str] = Counter(
        thread.layer
        for thread in placement.threads.guessed
        if thread.expected_layer == thread.layer and _is_judged(thread, placement)
    )
    for sample in placement.snapshot.layers:
        expected = belonging[sample.name]
        if sample.tasks + max(1, placement.limits.missing_ratio * expected) < expected:
            yield Finding(
                f"layer {sample.name}",
                f"{expected} threads that ran belong in layer {sample.name!r}, but the engine "
                f"counts {sample.tasks} there",
                FOLLOWS_LATE,
                {"threads": expected, "counted": sample.tasks, "inferred": 1},
            )


def _finding(owner: str, planned: str, strays: list[ThreadSample], threads: int) -> Finding:
    actual = ", ".join(sorted({thread.layer for thread in strays}))
    misled = [thread for thread in strays if thread.hinted_layer not in ("", planned)]
    return Finding(
        f"{owner} in {planned}",
        f"{len(strays)} of {threads} threads that belong in layer {planned!r} run in {actual}: "
        f"{busiest(strays)}",
        NOT_HINTED if misled else FOLLOWS_LATE,
        {
            "strays": len(strays),
            "hinted_elsewhere": len(misled),
            "threads": threads,
            "wanted": planned,
            "actual": actual,
            "cpu_used": cpu_used(strays),
            **inferred(*strays),
        },
    )
