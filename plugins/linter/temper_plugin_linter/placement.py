"""A snapshot as the invariants look at it: who is on which CPU, and whose CPU that is."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property

from attrs import define

from temper_core import Layer, LayerKind, LayerSample, Mode, Snapshot, ThreadSample


@define(frozen=True, slots=False)
class Placement:
    """One window of a node that runs the engine."""

    snapshot: Snapshot

    @property
    def is_judged(self) -> bool:
        """Whether there is a promise at all: the stock scheduler makes none."""
        return self.snapshot.status.mode is Mode.ENFORCING and self.snapshot.plan is not None

    @cached_property
    def threads_by_cpu(self) -> Mapping[int, list[ThreadSample]]:
        """Threads by the CPU they were seen on."""
        found: defaultdict[int, list[ThreadSample]] = defaultdict(list)
        for thread in self.snapshot.threads:
            found[thread.cpu].append(thread)
        return found

    @cached_property
    def threads_by_layer(self) -> Mapping[str, list[ThreadSample]]:
        """Threads by the layer they were seen in."""
        found: defaultdict[str, list[ThreadSample]] = defaultdict(list)
        for thread in self.snapshot.threads:
            found[thread.layer].append(thread)
        return found

    @cached_property
    def pinned(self) -> frozenset[str]:
        """Layers that fence their CPUs off: tier layers as well as exclusive thread groups."""
        return self._named(lambda layer: layer.kind is LayerKind.CONFINED or layer.exclusive)

    @cached_property
    def protected(self) -> frozenset[str]:
        """Layers that others keep off: the pinned, and those marked protected."""
        return self.pinned | self._named(lambda layer: layer.protected)

    @cached_property
    def protected_cpus(self) -> frozenset[int]:
        """CPUs that protected layers own now."""
        return frozenset(
            cpu
            for sample in self.snapshot.layers
            if sample.name in self.protected
            for cpu in sample.cpus
        )

    def samples(self, kind: LayerKind) -> list[LayerSample]:
        """Return the layers of that kind."""
        return [sample for sample in self.snapshot.layers if sample.kind is kind]

    def _named(self, chosen: Callable[[Layer], bool]) -> frozenset[str]:
        layers = self.snapshot.plan.layers if self.snapshot.plan else ()
        return frozenset(layer.name for layer in layers if chosen(layer))


def thread_name(thread: ThreadSample) -> str:
    """Name a thread as people look for it: its pod, its name, its number."""
    name = f"{thread.comm}[{thread.tid}]"
    return f"{owner_name(thread)} {name}" if thread.pod else name


def owner_name(thread: ThreadSample) -> str:
    """Name what a thread belongs to: its pod, or its process."""
    if not thread.pod:
        return thread.process or thread.comm
    return f"{thread.namespace}/{thread.pod}" if thread.namespace else thread.pod


def busiest(threads: list[ThreadSample], most: int = 3) -> str:
    """Name the busiest of *threads*, busiest first."""
    ranked = sorted(threads, key=lambda thread: (-thread.cpu_used, thread.tid))
    return ", ".join(thread_name(thread) for thread in ranked[:most])
