"""How many nodes are performance nodes."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil

from attrs import frozen

from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.defaults import MIN_CONFIDENCE
from temper_plugin_power.numbers import clamped, half_away

WEIGHTS = {"high": Fraction(3, 2), "medium": Fraction(1), "low": Fraction(1, 2)}
"""Of a pod's intensity. A GPU that it does not use does not count."""
DEFAULT_INTERVAL_S = 60


@frozen
class Queue:
    """The settings of the policy that follows demand."""

    base_fraction: float = 0.60
    least: int = 1
    most: int = 1_000_000
    """0 or less is all nodes."""
    pods_per_node: int = 10


def static_count(nodes: int, fraction: float) -> int:
    """Return the performance nodes of ``static_partition``."""
    return half_away(nodes * clamped(fraction, 0.0, 1.0))


def queue_count(nodes: int, demand: Fraction, queue: Queue) -> int:
    """Return the performance nodes of ``queue_aware_v1`` for that much weighted *demand*."""
    least = max(0, queue.least)
    most = max(least, queue.most if queue.most > 0 else nodes)
    needed = ceil(demand / max(1, queue.pods_per_node))
    count = max(static_count(nodes, queue.base_fraction), needed)
    return min(nodes, max(least, min(most, count)))


def swapped_profiles(nodes: int, now_s: int, interval_s: int) -> list[str]:
    """Return the profile of each node by ``rule_swap_v1``: the first two are eco in turns.

    A single node alternates. *now_s* are seconds since 1970.
    """
    phase = now_s // (interval_s if interval_s > 0 else DEFAULT_INTERVAL_S) % 2
    return ["eco" if place == phase else "performance" for place in range(nodes)]


def demand_of(
    profiles: Iterable[PowerProfile | None],
    min_confidence: float = MIN_CONFIDENCE,
    weights: Mapping[str, Fraction] = WEIGHTS,
) -> Fraction:
    """Return the weighted demand of performance-only pods, by the profiles of their workloads."""
    return sum((weight(profile, min_confidence, weights) for profile in profiles), Fraction(0))


def weight(
    profile: PowerProfile | None,
    min_confidence: float = MIN_CONFIDENCE,
    weights: Mapping[str, Fraction] = WEIGHTS,
) -> Fraction:
    """Return the weight of a pod by its intensity: 1 without a profile that counts."""
    if profile is None:
        return Fraction(1)
    intensities = {"cpu.intensity": profile.cpu.intensity, "gpu.intensity": profile.gpu.intensity}
    counted = [
        weights[intensity]
        for path, intensity in intensities.items()
        if intensity in weights and profile.counts(path, min_confidence)
    ]
    return max(counted, default=Fraction(1))
