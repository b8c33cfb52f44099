"""Counters for Prometheus: sums over the windows of all snapshots.

A snapshot holds the rates of one window. This module adds the windows up to counters, so that no
window is lost between two scrapes. Memory is bounded: pods and layers that left are forgotten.
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
"""A pod or layer that returns within this time continues its counters."""
MOST_GONE = 256
"""Pods or layers whose counters are kept after they left."""
BUSYNESS_S = 60.0
"""Time constant of the smoothed CPU use by which pods are ordered."""

PodKey = tuple[str, str]
Name = TypeVar("Name")


class PodTotals(NamedTuple):
    """Usage of a pod since it was first seen, in seconds. ``busyness`` is its smoothed CPU use.

    ``switches`` is -1 after a window without a count of context switches.
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
    """Usage of a layer since it was first seen, in seconds."""

    cpu_s: float = 0.0
    seen_at: float = 0.0


Kept = TypeVar("Kept", PodTotals, LayerTotals)


class TierTotals(NamedTuple):
    """Usage of all pods of a tier, in seconds, including pods that left."""

    cpu_s: float = 0.0
    run_delay_s: float = 0.0


@frozen
class Sums:
    """All totals at one moment. The record is immutable, so that any thread may read it."""

    observed_s: float = 0.0
    pods: Mapping[PodKey, PodTotals] = field(factory=dict)
    layers: Mapping[str, LayerTotals] = field(factory=dict)
    tiers: Mapping[Tier, TierTotals] = field(factory=dict)
    overhead_s: Mapping[str, float] = field(factory=dict)
    bpf_s: float = 0.0


@define(eq=False)
class Totals:
    """Adds snapshots up. ``sums`` is replaced as a whole. Only one thread may call ``add``."""

    sums: Sums = Sums()
    _threads: dict[PodKey, PodThreads] = field(factory=dict, init=False)
    _last_at: float = field(default=-math.inf, init=False)

    def add(self, snapshot: Snapshot) -> None:
        """Add the window of *snapshot*. A snapshot that was already added is ignored."""
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
        self._threads = {
            key: threads for key, threads in self._threads.items() if key in self.sums.pods
        }

    def _pods(
        self, snapshot: Snapshot, pods: Mapping[PodKey, PodSample]
    ) -> Mapping[PodKey, PodTotals]:
        groups = group_threads(snapshot.threads)
        window_s = snapshot.window_s
        fading = math.exp(-window_s / BUSYNESS_S)
        totals: dict[PodKey, PodTotals] = {}
        for key, pod in pods.items():
            old = self.sums.pods.get(key)
            busyness = pod.cpu_used
            if old is None:
                old = PodTotals()
            elif window_s:
                busyness += (old.busyness - pod.cpu_used) * fading
            threads = self._threads.setdefault(key, PodThreads())
            threads.add(groups.get(key, {}), pod, window_s)
            totals[key] = PodTotals(
                old.cpu_s + pod.cpu_used * window_s,
                old.run_delay_s + pod.run_delay * window_s,
                old.short_lived_s + pod.short_lived_cpu_used * window_s,
                old.throttled_s + pod.throttled_s,
                _count(old.switches, pod.switches),
                busyness,
                threads.totals,
                snapshot.monotonic_s,
            )
        return {**_remembered(self.sums.pods, totals, snapshot.monotonic_s), **totals}

    def _layers(self, snapshot: Snapshot) -> Mapping[str, LayerTotals]:
        totals: dict[str, LayerTotals] = {}
        for layer in snapshot.layers:
            old = self.sums.layers.get(layer.name, LayerTotals())
            totals[layer.name] = LayerTotals(
                old.cpu_s + layer.cpus_used * snapshot.window_s,
                snapshot.monotonic_s,
            )
        return {**_remembered(self.sums.layers, totals, snapshot.monotonic_s), **totals}


def merged_pods(pods: Iterable[PodSample]) -> dict[PodKey, PodSample]:
    """Return pods by the names in their labels. Pods of one name are merged."""
    merged: dict[PodKey, PodSample] = {}
    for pod in pods:
        key = pod_key(pod)
        merged[key] = _together(merged[key], pod) if key in merged else pod
    return merged


def pod_key(pod: PodSample) -> PodKey:
    """Return the namespace and name that label a pod, never its uid."""
    return readable(pod.namespace), readable(pod.pod)


def _together(one: PodSample, other: PodSample) -> PodSample:
    """Add up the usage of two pods of one name. Other fields are those of the busier pod."""
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
    """Add up two counts. The sum is -1, unknown, where one of them is."""
    return -1 if min(one, other) < 0 else one + other


def _remembered(
    old: Mapping[Name, Kept], present: Mapping[Name, Kept], now: float
) -> Mapping[Name, Kept]:
    """Return the entries that left recently, at most ``MOST_GONE``, preferring the newest."""
    absent = [(name, totals) for name, totals in old.items() if name not in present]
    recent = [(name, totals) for name, totals in absent if now - totals.seen_at < FORGET_S]
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
