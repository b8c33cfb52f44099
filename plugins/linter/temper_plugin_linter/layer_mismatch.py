"""``layer_mismatch``: every thread is in the layer that the plan wants it in."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from temper_core import Finding, Snapshot, ThreadSample
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.placement import Placement, busiest, owner_name

FOLLOWS_LATE = (
    "the engine looks at a thread's name and cgroup again only when it wakes up: renice one that "
    "never sleeps by +1 and back; if that does not help, compare 'temper explain' with the "
    "thread's cgroup"
)
NOT_HINTED = (
    "Temper's table sends these threads elsewhere: see 'steering' in 'temper observe' for scopes "
    "that were not found, and whether the walks fail"
)


def layer_mismatch(snapshot: Snapshot, limits: Limits) -> Iterator[Finding]:
    """Find threads in another layer than the plan's, told once per pod and wanted layer.

    Plan, hint and the engine's own record of the thread are compared where they are known.
    Threads younger than ``settle_windows`` may still be on their way, and the kernel's own
    threads are not ours to place.
    """
    if not Placement(snapshot).is_judged:
        return
    settled_s = limits.settle_windows * snapshot.window_s
    placed: defaultdict[tuple[str, str], list[ThreadSample]] = defaultdict(list)
    for thread in snapshot.threads:
        is_known = bool(thread.layer and thread.expected_layer)
        if is_known and thread.age_s > settled_s and not thread.is_kthread:
            placed[owner_name(thread), thread.expected_layer].append(thread)
    yield from _missing(snapshot, placed, limits)
    for (owner, wanted), threads in placed.items():
        strays = [thread for thread in threads if thread.layer != wanted]
        if strays:
            yield _finding(owner, wanted, strays, len(threads))


def _missing(
    snapshot: Snapshot,
    placed: Mapping[tuple[str, str], list[ThreadSample]],
    limits: Limits,
) -> Iterator[Finding]:
    """Find layers of which the engine counts fewer threads than belong there and ran.

    Where a thread's own layer is only inferred, this is the engine's word against the plan.
    """
    wanted: Counter[str] = Counter()
    for (_, layer), threads in placed.items():
        inferred = [thread for thread in threads if not thread.layer_is_known]
        wanted[layer] += sum(thread.layer == layer for thread in inferred)
    for sample in snapshot.layers:
        belonging = wanted[sample.name]
        if sample.tasks + max(1, limits.missing_ratio * belonging) < belonging:
            yield Finding(
                f"layer {sample.name}",
                f"{belonging} threads that ran belong in layer {sample.name!r}, but the engine "
                f"counts {sample.tasks} there",
                FOLLOWS_LATE,
                {"threads": belonging, "counted": sample.tasks},
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
            "cpu_used": sum(thread.cpu_used for thread in strays),
        },
    )
