"""Totals of a pod's threads by name: the few busiest names, and the rest of the pod.

Threads are grouped by name without numbers, never by tid. A published name keeps its series until
another is clearly busier, so that series do not come and go with every window.
"""

import math
from collections.abc import Iterable, Mapping
from heapq import nlargest
from typing import NamedTuple

from attrs import define, field

from temper_core.metrics.label_text import REST, readable, thread_group
from temper_core.records.snapshots import PodSample, ThreadSample

TOP_NAMES = 5
"""Published names per pod, besides the rest."""
MOST_CANDIDATES = 32
"""Names per pod whose CPU use is tracked."""
SMOOTHING_S = 300.0
"""Time constant of the smoothed CPU use that selects the busiest names."""
LEAST_SHARE = 0.001
"""Least smoothed CPU use, in CPUs, of a published name."""
CLEARLY_BUSIER = 1.5
LARGEST_EXPONENT = 50.0

Used = Mapping[str, list[float]]
"""By name: the CPU use of its threads in a window and their wait for a CPU, both in CPUs."""


class ThreadTotals(NamedTuple):
    """Usage of threads by name, in seconds. A name counts from its first publication."""

    cpu_s: Mapping[str, float] = {}
    run_delay_s: Mapping[str, float] = {}


NO_THREADS = ThreadTotals()


def group_threads(threads: Iterable[ThreadSample]) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Add up threads by pod and name. Threads outside of pods are left out."""
    groups: dict[tuple[str, str], dict[str, list[float]]] = {}
    names_by_pod: dict[tuple[str, str], dict[str, list[float]]] = {}
    for thread in threads:
        if not thread.pod:
            continue
        pod = thread.namespace, thread.pod
        names = names_by_pod.get(pod)
        if names is None:
            key = readable(thread.namespace), readable(thread.pod)
            names = names_by_pod[pod] = groups.setdefault(key, {})
        name = thread_group(thread.comm)
        use = names.get(name)
        if use is None:
            names[name] = [thread.cpu_used, thread.run_delay_ratio]
        else:
            use[0] += thread.cpu_used
            use[1] += thread.run_delay_ratio
    return groups


@define(eq=False)
class PodThreads:
    """Tracks the names of one pod. ``totals`` covers the published names and the rest.

    Smoothing costs time only for names that ran: instead of decaying old scores in every window,
    it weights new use by a growing factor.
    """

    totals: ThreadTotals = NO_THREADS
    _scores: dict[str, float] = field(factory=dict, init=False)
    _exponent: float = field(default=0.0, init=False)
    _published: tuple[str, ...] = field(default=(), init=False)

    def add(self, used: Used, pod: PodSample, window_s: float) -> None:
        """Add a window. The pod's usage outside of the published names goes to the rest."""
        if window_s <= 0:
            return
        self._exponent += window_s / SMOOTHING_S
        if used:
            self._score(used, window_s)
            self._choose(used)
        elif self.totals is not NO_THREADS and not pod.cpu_used and not pod.run_delay:
            return
        cpu_s, run_delay_s = dict(self.totals.cpu_s), dict(self.totals.run_delay_s)
        cpus, run_delay = pod.cpu_used, pod.run_delay
        for name in self._published:
            use = used.get(name)
            if use is not None:
                cpu_s[name] += use[0] * window_s
                run_delay_s[name] += use[1] * window_s
                cpus -= use[0]
                run_delay -= use[1]
        cpu_s[REST] = cpu_s.get(REST, 0.0) + max(0.0, cpus) * window_s
        run_delay_s[REST] = run_delay_s.get(REST, 0.0) + max(0.0, run_delay) * window_s
        self.totals = ThreadTotals(cpu_s, run_delay_s)

    def _score(self, used: Used, window_s: float) -> None:
        if self._exponent > LARGEST_EXPONENT:
            fading = math.exp(-self._exponent)
            self._scores = {name: score * fading for name, score in self._scores.items()}
            self._exponent = 0.0
        gain = math.exp(self._exponent) * -math.expm1(-window_s / SMOOTHING_S)
        scores = self._scores
        for name, (cpus, _) in used.items():
            scores[name] = scores.get(name, 0.0) + cpus * gain
        if len(scores) > MOST_CANDIDATES:
            busiest = nlargest(MOST_CANDIDATES, scores, key=scores.__getitem__)
            self._scores = {name: scores[name] for name in (*busiest, *self._published)}

    def _choose(self, used: Used) -> None:
        """Publish new names where there is room or a published name is clearly less busy."""
        scores, published = self._scores, [*self._published]
        least_score = LEAST_SHARE * math.exp(self._exponent)
        rising = [
            name
            for name in used
            if scores.get(name, 0.0) >= least_score and name not in published and name != REST
        ]
        for name in nlargest(TOP_NAMES, rising, key=scores.__getitem__):
            if len(published) < TOP_NAMES:
                published.append(name)
                continue
            least = min(published, key=scores.__getitem__)
            if scores[name] <= scores[least] * CLEARLY_BUSIER:
                break
            published[published.index(least)] = name
        if rising:
            self._tell_of(tuple(published))

    def _tell_of(self, names: tuple[str, ...]) -> None:
        """Start the totals of newly published names, and drop those of the others."""
        if names != self._published:
            self._published = names
            kept = (*names, *self.totals.cpu_s.keys() & {REST})
            self.totals = ThreadTotals(
                {name: self.totals.cpu_s.get(name, 0.0) for name in kept},
                {name: self.totals.run_delay_s.get(name, 0.0) for name in kept},
            )
