"""``smt_collision``: no pinned thread shares its physical core with a noisy sibling."""

from collections.abc import Iterator

from attrs import frozen

from temper_core import Finding, ThreadSample
from temper_plugin_linter.names import busiest, by_use, inferred, owner_of, subject_of
from temper_plugin_linter.placement import Placement, cpu_used

FOREIGN_FIX = (
    "see in 'temper explain' why the layer owns half a core; a layer of whole cores has no other "
    "layer on its siblings"
)
STACKED_FIX = (
    "give the hot threads an exclusive thread group in a profile (one whole core each), or raise "
    "the pod's CPU request"
)


@frozen
class _Beside:
    """A hot pinned thread, and the threads on one sibling of its CPU."""

    thread: ThreadSample
    sibling: int
    others: list[ThreadSample]


def smt_collision(placement: Placement) -> Iterator[Finding]:
    """Find hot threads of pinned layers whose sibling CPU is busy.

    The sibling runs another layer's work, or another hot thread of the same layer. In the second
    case two threads share one core while the layer may have other cores (sibling stacking).
    """
    if not placement.is_judged:
        return
    reported: set[str] = set()
    for place in _places(placement):
        for finding in (*_disturbed(place, placement), *_stacked(place, placement)):
            if finding.subject not in reported:  # report only the busiest thread of a kind
                reported.add(finding.subject)
                yield finding


def _places(placement: Placement) -> Iterator[_Beside]:
    pinned = placement.facts.pinned
    for thread in by_use(thread for thread in placement.threads.hot if thread.layer in pinned):
        for sibling in placement.snapshot.machine.siblings_of(thread.cpu):
            if sibling != thread.cpu:
                yield _Beside(thread, sibling, placement.by_cpu.get(sibling, []))


def _disturbed(place: _Beside, placement: Placement) -> Iterator[Finding]:
    thread = place.thread
    strangers = [other for other in place.others if other.layer != thread.layer]
    noise = cpu_used(strangers)
    if noise >= placement.limits.noisy_cpu:
        yield Finding(
            subject_of(thread),
            f"{thread.comm}[{thread.tid}] uses {thread.cpu_used:.2f} of CPU {thread.cpu} while "
            f"other layers use {noise:.2f} of its sibling CPU {place.sibling}: "
            f"{busiest(strangers)}",
            FOREIGN_FIX,
            _numbers(place, noise) | inferred(thread, *strangers),
            owner_of(thread),
        )


def _stacked(place: _Beside, placement: Placement) -> Iterator[Finding]:
    thread = place.thread
    for other in place.others:
        is_hot = other.layer == thread.layer and other.cpu_used >= placement.limits.hot_cpu
        if is_hot and (thread.cpu_used, other.tid) >= (other.cpu_used, thread.tid):
            yield Finding(
                " and ".join(sorted({subject_of(thread), subject_of(other)})) + " on one core",
                f"two hot threads of layer {thread.layer!r} share one core: "
                f"{thread.comm}[{thread.tid}] and {other.comm}[{other.tid}] on CPUs {thread.cpu} "
                f"and {place.sibling}, using {thread.cpu_used:.2f} and {other.cpu_used:.2f}",
                STACKED_FIX,
                _numbers(place, other.cpu_used) | inferred(thread, other),
                owner_of(thread),
            )


def _numbers(place: _Beside, noise: float) -> dict[str, float | int | str]:
    return {
        "cpu": place.thread.cpu,
        "sibling": place.sibling,
        "cpu_used": place.thread.cpu_used,
        "sibling_cpu_used": noise,
        "layer": place.thread.layer,
    }
