"""Arithmetic over measures of pods that may be missing. None is not known."""

from collections.abc import Callable, Iterable
from math import inf, isfinite

from temper_plugin_power.workloads.pods import MeasuredPod, PodMeasures

FULL_PCT = 100.0


def percent(part: float, whole: float) -> float | None:
    """Return *part* of *whole* in percent, at most 100. None without a whole."""
    return min(FULL_PCT, FULL_PCT * part / whole) if whole else None


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the known *values*."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def total(
    pods: Iterable[MeasuredPod], read: Callable[[PodMeasures], float | None], factor: float = 1.0
) -> float | None:
    """Return the sum of a measure times *factor*. None if no pod has it."""
    known = [value for pod in pods if (value := read(pod.measures)) is not None]
    return factor * sum(known) if known else None


def quotient(part: float | None, whole: float | None) -> float | None:
    """Return *part* by *whole*, None if it is not known or not finite."""
    result = inf if part is None or not whole else part / whole
    return result if isfinite(result) else None
