"""The order of pods in a plan, independent of the order of the input."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from attrs import evolve

from temper_core.records.pods import Pod

Item = TypeVar("Item")


def in_pod_order(items: Iterable[Item], pod_of: Callable[[Item], Pod]) -> tuple[Item, ...]:
    """Return *items* by namespace, name and uid of their pods, then by all other fields."""
    by_names: defaultdict[tuple[str, str, str], list[Item]] = defaultdict(list)
    for item in items:
        pod = pod_of(item)
        by_names[pod.namespace, pod.name, pod.uid].append(item)
    for alike in by_names.values():
        # The repr of a whole pod is slow, and hardly any pods share all three.
        if len(alike) > 1:
            alike.sort(key=lambda item: _everything(pod_of(item)))
    return tuple(item for key in sorted(by_names) for item in by_names[key])


def _everything(pod: Pod) -> str:
    annotations, labels = dict(sorted(pod.annotations.items())), dict(sorted(pod.labels.items()))
    return repr(evolve(pod, annotations=annotations, labels=labels))
