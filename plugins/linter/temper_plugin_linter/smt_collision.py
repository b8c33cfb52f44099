"""``smt_collision``: no pinned thread shares its physical core with a noisy sibling."""

from collections.abc import Iterator

from temper_core import Finding, Snapshot, ThreadSample
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.placement import Placement, busiest, thread_name

FOREIGN_FIX = (
    "see in 'temper explain' why the layer owns half a core; a layer of whole cores has no "
    "strangers on its siblings"
)
STACKED_FIX = (
    "give the hot threads an exclusive thread group in a profile (one whole core each), or raise "
    "the pod's CPU request"
)


def smt_collision(snapshot: Snapshot, limits: Limits) -> Iterator[Finding]:
    """Find hot threads of pinned layers whose sibling CPU is busy.

    Busy with another layer's work, or with another hot thread of the same layer: then two threads
    share one core while the layer may have others (sibling stacking), told once per pair.
    """
    placement = Placement(snapshot)
    if not placement.is_judged:
        return
    for thread in snapshot.threads:
        if thread.layer in placement.pinned and thread.cpu_used >= limits.hot_cpu:
            for sibling in snapshot.machine.siblings_of(thread.cpu):
                if sibling != thread.cpu:
                    beside = placement.threads_by_cpu.get(sibling, [])
                    yield from _disturbed(thread, sibling, beside, limits)
                    yield from _stacked(thread, sibling, beside, limits)


def _disturbed(
    thread: ThreadSample, sibling: int, beside: list[ThreadSample], limits: Limits
) -> Iterator[Finding]:
    strangers = [other for other in beside if other.layer != thread.layer]
    noise = sum(other.cpu_used for other in strangers)
    if noise >= limits.noisy_cpu:
        yield Finding(
            f"{thread_name(thread)} beside CPU {sibling}",
            f"uses {thread.cpu_used:.2f} of CPU {thread.cpu} while other layers use {noise:.2f} "
            f"of its sibling CPU {sibling}: {busiest(strangers)}",
            FOREIGN_FIX,
            {
                "cpu": thread.cpu,
                "sibling": sibling,
                "cpu_used": thread.cpu_used,
                "sibling_cpu_used": noise,
                "layer": thread.layer,
            },
        )


def _stacked(
    thread: ThreadSample, sibling: int, beside: list[ThreadSample], limits: Limits
) -> Iterator[Finding]:
    for other in beside:
        is_hot = other.layer == thread.layer and other.cpu_used >= limits.hot_cpu
        if is_hot and other.tid > thread.tid:
            yield Finding(
                f"{thread_name(thread)} and {other.comm}[{other.tid}]",
                f"two hot threads of layer {thread.layer!r} share one core: CPUs {thread.cpu} and "
                f"{sibling}, using {thread.cpu_used:.2f} and {other.cpu_used:.2f}",
                STACKED_FIX,
                {
                    "cpu": thread.cpu,
                    "sibling": sibling,
                    "cpu_used": thread.cpu_used,
                    "sibling_cpu_used": other.cpu_used,
                    "layer": thread.layer,
                },
            )
