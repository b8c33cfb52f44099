"""``layer_mismatch``: every thread is in the layer that the plan wants it in."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from temper_core import Finding, ThreadSample
from temper_plugin_linter.names import busiest, inferred, owner_name
from temper_plugin_linter.placement import REAL_TIME, Placement, cpu_used

FOLLOWS_LATE = (
    "the engine looks at a thread's name and cgroup again only when it wakes up: renice one that "
    "never sleeps by +1 and back; if that does not help, compare 'temper explain' with the "
    "thread's cgroup"
)
NOT_HINTED = (
    "Temper's table sends these threads elsewhere: see 'steering' in 'temper observe' for scopes "
    "that were not found, and whether the walks fail"
)


def layer_mismatch(placement: Placement) -> Iterator[Finding]:
    """Find threads in another layer than the plan's, told once per pod and wanted layer.

    Plan, hint and the engine's own record of the thread are compared where they are known.
    Threads younger than ``settle_windows`` may still be on their way. The kernel's own threads
    are not ours to place, and real-time threads are not the engine's.
    """
    if not placement.is_judged:
        return
    yield from _missing(placement)
    strays: defaultdict[tuple[str, str], list[ThreadSample]] = defaultdict(list)
    for thread in placement.threads.astray:
        if _is_judged(thread, placement):
            strays[owner_name(thread), thread.expected_layer].append(thread)
    for (owner, wanted), threads in strays.items():
        yield _finding(owner, wanted, threads, _belonging(owner, wanted, placement))


def _is_judged(thread: ThreadSample, placement: Placement) -> bool:
    settled_s = placement.limits.settle_windows * placement.snapshot.window_s
    return bool(
        thread.layer
        and thread.expected_layer
        and thread.age_s > settled_s
        and not thread.is_kthread
        and thread.policy not in REAL_TIME
    )


def _belonging(owner: str, wanted: str, placement: Placement) -> int:
    """Return how many threads of *owner* that ran belong in layer *wanted*."""
    return sum(
        thread.expected_layer == wanted
        and owner_name(thread) == owner
        and _is_judged(thread, placement)
        for thread in placement.snapshot.threads
    )


def _missing(placement: Placement) -> Iterator[Finding]:
    """Find layers of which the engine counts fewer threads than belong there and ran.

    Where a thread's own layer is only inferred, this is the engine's word against the plan.
    """
    belonging: Counter[str] = Counter(
        thread.layer
        for thread in placement.threads.guessed
        if thread.expected_layer == thread.layer and _is_judged(thread, placement)
    )
    for sample in placement.snapshot.layers:
        wanted = belonging[sample.name]
        if sample.tasks + max(1, placement.limits.missing_ratio * wanted) < wanted:
            yield Finding(
                f"layer {sample.name}",
                f"{wanted} threads that ran belong in layer {sample.name!r}, but the engine "
                f"counts {sample.tasks} there",
                FOLLOWS_LATE,
                {"threads": wanted, "counted": sample.tasks, "inferred": 1},
            )


def _finding(owner: str, wanted: str, strays: list[ThreadSample], threads: int) -> Finding:
    actual = ", ".join(sorted({thread.layer for thread in strays}))
    misled = [thread for thread in strays if thread.hinted_layer not in ("", wanted)]
    return Finding(
        f"{owner} in {wanted}",
        f"{len(strays)} of {threads} threads that belong in layer {wanted!r} run in {actual}: "
        f"{busiest(strays)}",
        NOT_HINTED if misled else FOLLOWS_LATE,
        {
            "strays": len(strays),
            "hinted_elsewhere": len(misled),
            "threads": threads,
            "wanted": wanted,
            "actual": actual,
            "cpu_used": cpu_used(strays),
            **inferred(*strays),
        },
    )
