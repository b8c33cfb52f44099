"""Counters for Prometheus: what the windows of all snapshots add up to.

A snapshot tells rates of one window. What only grows is made of them here, window by window, so
that nothing is lost between two scrapes. All of it is bounded: whoever has left is forgotten.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from attrs import define, evolve, field, frozen

from temper_core.metrics.label_text import readable
from temper_core.metrics.thread_totals import NO_THREADS, PodThreads, ThreadTotals, group_threads
from temper_core.records.snapshots import PodSample, Snapshot
from temper_core.records.tiers import Tier

FORGET_S = 600.0
"""A pod or layer that comes back within this time goes on where it was."""
MOST_GONE = 256
"""Pods or layers that have left and are still remembered."""
BUSYNESS_S = 60.0
"""Time constant of the smoothed CPU use by which pods are ordered."""

PodKey = tuple[str, str]
Name = TypeVar("Name")


class PodTotals(NamedTuple):
    """What a pod used since it was first seen, in seconds. ``busyness`` in CPUs, smoothed.

    ``switches`` is -1 once there was a window in which nobody counted them.
    """

    cpu_s: float = 0.0
    run_delay_s: float = 0.0
    short_lived_s: float = 0.0
    throttled_s: float = 0.0
    switches: int = 0
    busyness: float = 0.0
    threads: ThreadTotals = NO_THREADS
    seen_at: float = 0.0


class LayerTotals(NamedTuple):
    """What a layer used since it was first seen, in seconds."""

    cpu_s: float = 0.0
    seen_at: float = 0.0


Kept = TypeVar("Kept", PodTotals, LayerTotals)


class TierTotals(NamedTuple):
    """What all pods of a tier used, in seconds, those that have left included."""

    cpu_s: float = 0.0
    run_delay_s: float = 0.0


@frozen
class Sums:
    """All totals at one moment. A whole value that any thread may read."""

    observed_s: float = 0.0
    pods: Mapping[PodKey, PodTotals] = field(factory=dict)
    layers: Mapping[str, LayerTotals] = field(factory=dict)
    tiers: Mapping[Tier, TierTotals] = field(factory=dict)
    overhead_s: Mapping[str, float] = field(factory=dict)
    bpf_s: float = 0.0


@define(eq=False)
class Totals:
    """Adds snapshots up. ``sums`` is replaced as a whole. Only one thread may ``add``."""

    sums: Sums = Sums()
    _threads: dict[PodKey, PodThreads] = field(factory=dict, init=False)
    _last_at: float = field(default=-math.inf, init=False)

    def add(self, snapshot: Snapshot) -> None:
        """Add the window of *snapshot*. One that was added before changes nothing."""
        if snapshot.monotonic_s <= self._last_at:
            return
        self._last_at = snapshot.monotonic_s
        pods = merged_pods(snapshot.pods)
        self.sums = Sums(
            observed_s=self.sums.observed_s + snapshot.window_s,
            pods=self._pods(snapshot, pods),
            layers=self._layers(snapshot),
            tiers=_tiers(self.sums.tiers, snapshot),
            overhead_s=_overhead(self.sums.overhead_s, snapshot),
            bpf_s=self.sums.bpf_s + snapshot.overhead.bpf_cpu_ratio * snapshot.window_s,
        )
        self._threads = {key: each for key, each in self._threads.items() if key in self.sums.pods}

    def _pods(
        self, snapshot: Snapshot, pods: Mapping[PodKey, PodSample]
    ) -> Mapping[PodKey, PodTotals]:
        groups = group_threads(snapshot.threads)
        window_s = snapshot.window_s
        fading = math.exp(-window_s / BUSYNESS_S)
        found: dict[PodKey, PodTotals] = {}
        for key, pod in pods.items():
            old = self.sums.pods.get(key)
            busyness = pod.cpu_used
            if old is None:
                old = PodTotals()
            elif window_s:
                busyness += (old.busyness - pod.cpu_used) * fading
            threads = self._threads.setdefault(key, PodThreads())
            threads.add(groups.get(key, {}), pod, window_s)
            found[key] = PodTotals(
                old.cpu_s + pod.cpu_used * window_s,
                old.run_delay_s + pod.run_delay * window_s,
                old.short_lived_s + pod.short_lived_cpu_used * window_s,
                old.throttled_s + pod.throttled_s,
                _count(old.switches, pod.switches),
                busyness,
                threads.totals,
                snapshot.monotonic_s,
            )
        return {**_remembered(self.sums.pods, found, snapshot.monotonic_s), **found}

    def _layers(self, snapshot: Snapshot) -> Mapping[str, LayerTotals]:
        found: dict[str, LayerTotals] = {}
        for layer in snapshot.layers:
            old = self.sums.layers.get(layer.name, LayerTotals())
            found[layer.name] = LayerTotals(
                old.cpu_s + layer.cpus_used * snapshot.window_s,
                snapshot.monotonic_s,
            )
        return {**_remembered(self.sums.layers, found, snapshot.monotonic_s), **found}


def merged_pods(pods: Iterable[PodSample]) -> dict[PodKey, PodSample]:
    """Return pods by what names them in labels. Those that are named alike are taken together."""
    found: dict[PodKey, PodSample] = {}
    for pod in pods:
        key = pod_key(pod)
        found[key] = _together(found[key], pod) if key in found else pod
    return found


def pod_key(pod: PodSample) -> PodKey:
    """Return what names a pod in labels. Never its uid."""
    return readable(pod.namespace), readable(pod.pod)


def _together(one: PodSample, other: PodSample) -> PodSample:
    """Add up what two pods of one name use. The rest is of the busier one."""
    busier = max(one, other, key=lambda pod: pod.cpu_used)
    return evolve(
        busier,
        threads=one.threads + other.threads,
        cpu_used=one.cpu_used + other.cpu_used,
        memory_bytes=_count(one.memory_bytes, other.memory_bytes),
        short_lived_cpu_used=one.short_lived_cpu_used + other.short_lived_cpu_used,
        run_delay=one.run_delay + other.run_delay,
        switches=_count(one.switches, other.switches),
        throttled_s=one.throttled_s + other.throttled_s,
    )


def _count(one: int, other: int) -> int:
    """Add up two counts. Without one of them the sum is not known either, which is -1."""
    return -1 if min(one, other) < 0 else one + other


def _remembered(
    old: Mapping[Name, Kept], present: Mapping[Name, Kept], now: float
) -> Mapping[Name, Kept]:
    """Return those that are gone, but not for long. When they are many, the last to go."""
    gone = [(name, kept) for name, kept in old.items() if name not in present]
    recent = [(name, kept) for name, kept in gone if now - kept.seen_at < FORGET_S]
    recent.sort(key=lambda pair: pair[1].seen_at)
    return dict(recent[-MOST_GONE:])


def _tiers(old: Mapping[Tier, TierTotals], snapshot: Snapshot) -> Mapping[Tier, TierTotals]:
    cpus = dict.fromkeys(Tier, 0.0)
    run_delay = dict.fromkeys(Tier, 0.0)
    for pod in snapshot.pods:
        cpus[pod.tier] += pod.cpu_used
        run_delay[pod.tier] += pod.run_delay
    return {
        tier: TierTotals(
            old.get(tier, TierTotals()).cpu_s + cpus[tier] * snapshot.window_s,
            old.get(tier, TierTotals()).run_delay_s + run_delay[tier] * snapshot.window_s,
        )
        for tier in Tier
    }


def _overhead(old: Mapping[str, float], snapshot: Snapshot) -> Mapping[str, float]:
    ratios = snapshot.overhead.cpu_ratio
    return {
        part: old.get(part, 0.0) + ratios.get(part, 0.0) * snapshot.window_s
        for part in {**old, **ratios}
    }
