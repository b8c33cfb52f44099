"""The order of pods in a plan: the same however they are listed, odd lists included."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from attrs import evolve

from temper_core.records.pods import Pod

Item = TypeVar("Item")


def in_pod_order(items: Iterable[Item], pod_of: Callable[[Item], Pod]) -> tuple[Item, ...]:
    """Return *items* by namespace, name and uid of their pods, then by all else."""
    found: defaultdict[tuple[str, str, str], list[Item]] = defaultdict(list)
    for item in items:
        pod = pod_of(item)
        found[pod.namespace, pod.name, pod.uid].append(item)
    for alike in found.values():
        # Writing a whole pod out takes long, and next to none share all three names.
        if len(alike) > 1:
            alike.sort(key=lambda item: _everything(pod_of(item)))
    return tuple(item for key in sorted(found) for item in found[key])


def _everything(pod: Pod) -> str:
    annotations, labels = dict(sorted(pod.annotations.items())), dict(sorted(pod.labels.items()))
    return repr(evolve(pod, annotations=annotations, labels=labels))
