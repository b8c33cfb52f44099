"""Converts the counts of a window to a ``WakeWindow`` with the names of its greatest entries."""

from collections import defaultdict
from collections.abc import Iterator
from heapq import nlargest

from attrs import define

from temper_core import Blocking, WaitHistogram, WakeEdge, WakeWindow
from temper_plugin_tracer.kernel import NS_PER_S, WindowCounts
from temper_plugin_tracer.kernel_records import BUCKETS, COUNTS, REST
from temper_plugin_tracer.roster import PartyRoster

MOST_EDGES = 256
MOST_BLOCKINGS = 128
MOST_PODS = 64
"""Entries of one window: the most frequent edges, the longest blockings and pods' waits."""
MOST_KINDS = 1_024
"""Kinds of threads whose waits are summed at a time. Every thread may have another name."""
NODE = "node"
NO_WAITS = bytes(COUNTS.size)


@define
class _Waits:
    """A sum of waits. ``packed`` is one number that holds every bucket's count in 32 bits.

    Adding a thread's histogram therefore takes one addition. No bucket of one window comes near to
    2^32.
    """

    packed: int = 0
    total_ns: int = 0

    def add(self, packed: int, total_ns: int) -> None:
        """Add other waits."""
        self.packed += packed
        self.total_ns += total_ns

    def histogram(self, subject: str) -> WaitHistogram:
        """Return the histogram of *subject*."""
        counts = COUNTS.unpack(self.packed.to_bytes(4 * BUCKETS, "little"))
        return WaitHistogram(subject, counts, self.total_ns / NS_PER_S)


def tell_window(counted: WindowCounts, roster: PartyRoster, *, at: float) -> WakeWindow:
    """Return the window of these counts, the greatest first. *at* is its wall-clock end."""
    frequent = nlargest(MOST_EDGES, counted.edges.items(), key=lambda edge: edge[1])
    longest = nlargest(MOST_BLOCKINGS, counted.blockings.items(), key=lambda pair: pair[1][1])
    return WakeWindow(
        at=at,
        length_s=counted.length_s,
        every_s=0.0,
        switches_per_s=counted.switches / counted.length_s if counted.length_s else 0.0,
        edges=tuple(
            WakeEdge(roster.party(waker), roster.party(wakee), wakes)
            for (waker, wakee), wakes in frequent
        ),
        blockings=tuple(
            Blocking(roster.party(waiter), roster.party(runner), waits, waited_ns / NS_PER_S)
            for (waiter, runner), (waits, waited_ns) in longest
        ),
        waits=tuple(_histograms(counted, roster)) if counted.knows_waits else (),
        lost=counted.lost,
    )


def _histograms(counted: WindowCounts, roster: PartyRoster) -> Iterator[WaitHistogram]:
    """Yield the waits of the node, of the layers, and of the pods that waited longest."""
    pods: defaultdict[str, _Waits] = defaultdict(_Waits)
    layers: defaultdict[str, _Waits] = defaultdict(_Waits)
    node = _Waits()
    for tid, waits in _alike(counted, roster):
        node.add(waits.packed, waits.total_ns)
        if tid == REST:
            continue
        party = roster.party(tid)
        if party.layer:
            layers[party.layer].add(waits.packed, waits.total_ns)
        if party.pod:
            pods[party.pod].add(waits.packed, waits.total_ns)
    yield node.histogram(NODE)
    for layer in sorted(layers):
        yield layers[layer].histogram(f"layer {layer}")
    for pod in nlargest(MOST_PODS, pods, key=lambda name: (pods[name].total_ns, name)):
        yield pods[pod].histogram(pod)


def _alike(counted: WindowCounts, roster: PartyRoster) -> Iterator[tuple[int, _Waits]]:
    """Yield one tid and the sum of waits for each group of threads of the same layer and pod.

    Thousands of threads are of a few dozen kinds. Naming each thread took ten times as long.
    """
    kinds: dict[object, tuple[int, _Waits]] = {}
    for tid, record in counted.parties.items():
        if record.counts == NO_WAITS:  # woke others and never waited
            continue
        if len(kinds) >= MOST_KINDS:
            yield from kinds.values()
            kinds.clear()
        is_leader, kind = tid == record.tgid, None
        if tid != REST and tid not in roster.sampled:
            kind = (record.tgid, record.cgroup, record.comm, is_leader)
        known = kinds.setdefault(kind or tid, (tid, _Waits()))
        known[1].add(int.from_bytes(record.counts, "little"), record.waited_ns)
    yield from kinds.values()
