"""The demand of each container in one window of observation."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from attrs import field, frozen

from temper_core import PodSample, Snapshot, ThreadSample
from temper_plugin_rightsizer.demand.waits import WindowWaits

MOST_RANKS = 8
"""Threads of a container that are identified by rank. More hot threads are counted as shared."""
LEAST_RANKED = 0.25
"""CPUs. A thread below it in a window cannot make its rank hot."""
Thread = TypeVar("Thread")
_DIGITS = re.compile(r"\d+")


def _storable(name: str) -> str:
    r"""Return *name* with each byte that is not UTF-8 as ``\udcXX``.

    A cgroup may have any name, and SQLite takes only text that can be encoded. Other names are not
    copied, as there are several for each container.
    """
    return name if name.isascii() else name.encode(errors="backslashreplace").decode()


@frozen
class ContainerKey:
    """A container of this node. ``uid`` is the pod's."""

    uid: str = field(converter=_storable)
    namespace: str = field(converter=_storable)
    pod: str = field(converter=_storable)
    container: str = field(converter=_storable)


@frozen
class WindowDemand:
    """One container's CPU demand in one window.

    ``total`` and ``ranked`` are in CPUs. ``ranked`` has the busiest threads in descending order,
    at most ``MOST_RANKS``, each at least ``LEAST_RANKED``. ``names`` has the name families of the
    same threads. ``run_delay`` is the waiting time of all threads as a multiple of the window.
    ``waits`` has it by thread, None if it is not known.
    """

    total: float = 0.0
    run_delay: float = 0.0
    ranked: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    waits: WindowWaits | None = None

    def rest(self, rank: int) -> float:
        """Return the demand without the *rank* busiest threads, in CPUs."""
        return max(self.total - sum(self.ranked[:rank]), 0.0)


def window_demands(
    snapshot: Snapshot, containers: Mapping[str, Sequence[str]]
) -> Mapping[ContainerKey, WindowDemand]:
    """Return the demand of every container of the pods in *snapshot*.

    *containers* has the names of the running containers by the pod's uid, to which those with a
    thread are added. A pod without any counts as one container without a name. CPU time of a pod
    in threads without a sample is shared out among its containers by the CPU time of their other
    threads, or to the first without any.
    """
    threads: defaultdict[tuple[str, str], list[ThreadSample]] = defaultdict(list)
    for thread in snapshot.threads:
        if thread.pod:
            threads[thread.namespace, thread.pod].append(thread)
    demands = {}
    for pod in snapshot.pods:
        samples: dict[str, list[ThreadSample]] = {name: [] for name in containers.get(pod.uid, ())}
        beside = []
        for thread in threads.get((pod.namespace, pod.pod), ()):
            if thread.container:
                samples.setdefault(thread.container, []).append(thread)
            else:
                # Of the pause process, or of a container just begun.
                beside.append(thread)
        samples.setdefault(next(iter(samples), ""), []).extend(beside)
        for name, demand in _of_pod(pod, samples):
            demands[ContainerKey(pod.uid, pod.namespace, pod.pod, name)] = demand
    return demands


def window_of(total: float, threads: Iterable[tuple[str, float]]) -> WindowDemand:
    """Return the demand of a container that used *total* CPUs, by its *threads*: name and CPUs."""
    busiest = _busiest(threads, lambda thread: thread[1])
    return WindowDemand(
        total=total,
        ranked=tuple(used for _, used in busiest),
        names=tuple(name_family(name) for name, _ in busiest),
    )


def name_family(comm: str) -> str:
    """Return the name with each number replaced by ``#``: ``worker-12`` and ``worker-3`` are one.

    A restarted thread or program keeps its family.
    """
    return _DIGITS.sub("#", comm)


def _of_pod(
    pod: PodSample, samples: Mapping[str, Sequence[ThreadSample]]
) -> Iterator[tuple[str, WindowDemand]]:
    used = {name: sum(thread.cpu_used for thread in of) for name, of in samples.items()}
    sampled = sum(used.values())
    unsampled = max(pod.cpu_used - sampled, 0.0)
    for number, (name, threads) in enumerate(samples.items()):
        share = used[name] / sampled if sampled else float(number == 0)
        yield name, _of_container(threads, used[name] + unsampled * share)


def _of_container(threads: Sequence[ThreadSample], total: float) -> WindowDemand:
    busiest = _busiest(threads, lambda thread: thread.cpu_used)
    return WindowDemand(
        total=total,
        run_delay=sum(thread.run_delay_ratio for thread in threads),
        ranked=tuple(thread.cpu_used for thread in busiest),
        names=tuple(name_family(thread.comm) for thread in busiest),
        waits=WindowWaits(tuple(each.run_delay_ratio for each in busiest), _groups(threads)),
    )


def _busiest(threads: Iterable[Thread], used: Callable[[Thread], float]) -> list[Thread]:
    """Return the threads that have a rank, in its order."""
    busy = [thread for thread in threads if used(thread) >= LEAST_RANKED]
    return sorted(busy, key=used, reverse=True)[:MOST_RANKS]


def _groups(threads: Sequence[ThreadSample]) -> Mapping[str, tuple[float, float]]:
    """Return the CPUs and the waits of the threads by name family."""
    groups: dict[str, tuple[float, float]] = {}
    for thread in threads:
        name = name_family(thread.comm)
        cpus, waiting = groups.get(name, (0.0, 0.0))
        groups[name] = cpus + thread.cpu_used, waiting + thread.run_delay_ratio
    return groups
