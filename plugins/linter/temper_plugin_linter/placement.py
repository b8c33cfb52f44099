"""A snapshot prepared for the invariants: threads by CPU, and CPUs by layer."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from attrs import define, field, frozen

from temper_core import (
    Layer,
    LayerKind,
    LayerPlan,
    LayerSample,
    Mode,
    PodSample,
    Snapshot,
    ThreadSample,
    WakeWindow,
)
from temper_plugin_linter.limits import Limits

REAL_TIME = frozenset({"fifo", "rr"})
NONE_OWNED: Mapping[str, frozenset[int]] = {}


@frozen
class PlacementHistory:
    """The state of earlier windows: whether a plan has settled, and the CPUs of layers.

    ``owned`` are the CPUs of each layer at the end of the previous window. ``wakes`` is the watched
    window before the last one, None if there was none.
    """

    is_settled: bool = True
    owned: Mapping[str, frozenset[int]] = NONE_OWNED
    wakes: WakeWindow | None = None


@define(slots=False)
class PlanFacts:
    """Facts that follow from a plan alone. A plan lasts for many windows."""

    plan: LayerPlan | None

    @cached_property
    def pinned(self) -> frozenset[str]:
        """Layers that fence their CPUs: Confined tier layers and exclusive thread groups."""
        return self._named(lambda layer: layer.kind is LayerKind.CONFINED or layer.exclusive)

    @cached_property
    def protected(self) -> frozenset[str]:
        """Layers whose CPUs other layers avoid: pinned ones, and those marked protected."""
        return self.pinned | self._named(lambda layer: layer.protected)

    @cached_property
    def layer_by_pod(self) -> Mapping[str, str]:
        """Layer names by pod key, for threads outside thread groups."""
        return self.plan.layer_by_pod if self.plan else {}

    def _named(self, chosen: Callable[[Layer], bool]) -> frozenset[str]:
        layers = self.plan.layers if self.plan else ()
        return frozenset(layer.name for layer in layers if chosen(layer))


@define(eq=False)
class SortedThreads:
    """The threads of one window by possible problem. A thread may be in several lists."""

    hot: list[ThreadSample] = field(factory=list)
    waiting: list[ThreadSample] = field(factory=list)
    real_time: list[ThreadSample] = field(factory=list)
    bound: list[ThreadSample] = field(factory=list)
    astray: list[ThreadSample] = field(factory=list)
    guessed: list[ThreadSample] = field(factory=list)
    by_layer: defaultdict[str, list[ThreadSample]] = field(factory=lambda: defaultdict(list))


@define(slots=False)
class Placement:
    """One window of a node, held against ``limits``.

    ``wakes`` is the last watched window of wake-ups, None where none is watched.
    """

    snapshot: Snapshot
    limits: Limits
    facts: PlanFacts
    past: PlacementHistory = PlacementHistory()
    wakes: WakeWindow | None = None

    @cached_property
    def is_judged(self) -> bool:
        """Whether placement can be judged: an engine enforces a settled plan.

        The default scheduler follows no plan, and an engine needs a few windows to apply one.
        """
        is_enforcing = self.snapshot.status.mode is Mode.ENFORCING
        return is_enforcing and self.snapshot.plan is not None and self.past.is_settled

    @cached_property
    def threads(self) -> SortedThreads:
        """The threads, sorted in one pass for all invariants: this runs on every tick."""
        threads, limits = SortedThreads(), self.limits
        hot_cpu, starved_s = limits.hot_cpu, limits.starved_s
        waits = min(limits.antagonist_ratio, starved_s / max(self.snapshot.window_s, starved_s))
        hot, waiting, by_layer = threads.hot.append, threads.waiting.append, threads.by_layer
        for thread in self.snapshot.threads:
            layer = thread.layer
            by_layer[layer].append(thread)
            if thread.cpu_used >= hot_cpu:
                hot(thread)
            if thread.run_delay_ratio >= waits or thread.waiting_s >= starved_s:
                waiting(thread)
            if thread.policy in REAL_TIME:
                threads.real_time.append(thread)
            if thread.affinity:
                threads.bound.append(thread)
            if layer != thread.expected_layer:
                threads.astray.append(thread)
            if not thread.layer_is_known:
                threads.guessed.append(thread)
        return threads

    @cached_property
    def by_cpu(self) -> Mapping[int, list[ThreadSample]]:
        """Threads by their last known CPU."""
        threads: defaultdict[int, list[ThreadSample]] = defaultdict(list)
        for thread in self.snapshot.threads:
            threads[thread.cpu].append(thread)
        return threads

    @cached_property
    def protected_cpus(self) -> frozenset[int]:
        """CPUs that protected layers own now and owned before: the engine moves fences."""
        return frozenset(
            cpu
            for sample in self.snapshot.layers
            if sample.name in self.facts.protected
            for cpu in self.fence(sample)
        )

    def fence(self, sample: LayerSample) -> frozenset[int]:
        """Return the CPUs that a layer owned all the time, as far as known."""
        return self.past.owned.get(sample.name, frozenset(sample.cpus)) & frozenset(sample.cpus)

    def grounds(self, sample: LayerSample) -> frozenset[int]:
        """Return the CPUs that a layer owned at any time, as far as known."""
        return self.past.owned.get(sample.name, frozenset()) | frozenset(sample.cpus)

    def samples(self, kind: LayerKind) -> list[LayerSample]:
        """Return the layers of that kind."""
        return [sample for sample in self.snapshot.layers if sample.kind is kind]

    @cached_property
    def pods(self) -> Mapping[str, PodSample]:
        """The pods by key, ``namespace/name``."""
        return {pod_key(pod): pod for pod in self.snapshot.pods}


def pod_key(of: PodSample | ThreadSample) -> str:
    """Return the key of a pod, or of a thread's pod: ``namespace/name``."""
    return f"{of.namespace}/{of.pod}" if of.namespace else of.pod


def cpu_used(threads: Iterable[ThreadSample]) -> float:
    """Return the CPUs that *threads* used together."""
    return sum(thread.cpu_used for thread in threads)
