"""The nodes of a cluster: their types, the requests of their pods, and free CPUs."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define, field, frozen

from temper_core import InputError, cpu_millis, memory_bytes
from temper_core.observed import rows, table, text
from temper_plugin_rightsizer.prices.machines import Machine, mean_prices, priced
from temper_plugin_rightsizer.prices.settings import Prices

KINDS = "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"
GIB = 1024.0**3
MILLIS = 1000.0
ENDED = "Succeeded", "Failed"
LONGEST_KIND = 128
Row = Mapping[str, Any]


@frozen
class Amount:
    """Cores, and GiB of memory."""

    cores: float = 0.0
    gib: float = 0.0

    def plus(self, other: "Amount") -> "Amount":
        """Return both together."""
        return Amount(self.cores + other.cores, self.gib + other.gib)

    def minus(self, other: "Amount") -> "Amount":
        """Return what is left without *other*, 0 at least."""
        return Amount(max(self.cores - other.cores, 0.0), max(self.gib - other.gib, 0.0))

    def most(self, other: "Amount") -> "Amount":
        """Return the larger of each."""
        return Amount(max(self.cores, other.cores), max(self.gib, other.gib))


@define
class ClusterMachines:
    """The nodes of a cluster. ``knows_pods`` is whether their pods could be listed."""

    knows_pods: bool = True
    _nodes: dict[str, tuple[Machine, Amount]] = field(factory=dict, init=False)
    _requested: dict[str, Amount] = field(factory=dict, init=False)

    def add_node(self, item: Row) -> None:
        """Add a node with its machine type, its capacity, and what pods can request."""
        metadata, status = table(item, "metadata"), table(item, "status")
        labels = table(metadata, "labels")
        kind = next(filter(None, (text(labels, each) for each in KINDS)), "")[:LONGEST_KIND]
        size = _amount(table(status, "capacity"))
        machine = Machine(kind, size.cores, size.gib)
        self._nodes[text(metadata, "name")] = machine, _amount(table(status, "allocatable"))

    def add_pod(self, item: Row) -> None:
        """Add the request of a pod to its node. Pods that have ended request nothing."""
        node = text(table(item, "spec"), "nodeName")
        if node and text(table(item, "status"), "phase") not in ENDED:
            known = self._requested.get(node, Amount())
            self._requested[node] = known.plus(request_of(table(item, "spec")))

    def rows(self, prices: Prices) -> Iterator[Mapping[str, Any]]:
        """Yield a row for each machine type and size: its prices, and the headroom of all of it.

        The headroom is what pods could request on the nodes and do not. It is None if the pods are
        not known.
        """
        groups: dict[Machine, list[Amount]] = {}
        for name, (machine, allocatable) in sorted(self._nodes.items()):
            idle = allocatable.minus(self._requested.get(name, Amount()))
            groups.setdefault(machine, []).append(idle)
        for machine, idles in groups.items():
            price = priced(machine, prices)
            yield {
                "type": machine.kind,
                "nodes": len(idles),
                "cores": round(machine.cores, 3),
                "gib": round(machine.gib, 3),
                "hour": round(price.hour, 6),
                "core_hour": round(price.core_hour, 6),
                "gib_hour": round(price.gib_hour, 6),
                "source": price.source,
                "idle_cores": self._idle(sum(idle.cores for idle in idles)),
                "idle_gib": self._idle(sum(idle.gib for idle in idles)),
            }

    def mean(self, prices: Prices) -> tuple[float, float] | None:
        """Return what a core and a GiB cost in the mean of all nodes. None without any size."""
        sized = [machine for machine, _ in self._nodes.values() if machine.cores]
        return mean_prices((each, priced(each, prices)) for each in sized) if sized else None

    def _idle(self, amount: float) -> float | None:
        return round(amount, 3) if self.knows_pods else None


def request_of(spec: Row) -> Amount:
    """Return what a pod requests of its node.

    It is the sum of the containers and native sidecars. An init container counts with the sidecars
    that started before it, if that is more. The overhead is added ("Resource sharing within
    containers" in Kubernetes' concepts of init containers). Requests of the pod itself count in
    place of those of its containers.
    """
    running = started = most = Amount()
    for container in rows(spec, "initContainers"):
        own = _request(container)
        if text(container, "restartPolicy") == "Always":
            started = started.plus(own)
            most = most.most(started)
        else:
            most = most.most(started.plus(own))
    for container in rows(spec, "containers"):
        running = running.plus(_request(container))
    total = running.plus(started).most(most)
    whole = table(table(spec, "resources"), "requests")
    if whole:
        of_pod = _amount(whole)
        total = Amount(
            of_pod.cores if "cpu" in whole else total.cores,
            of_pod.gib if "memory" in whole else total.gib,
        )
    return total.plus(_amount(table(spec, "overhead")))


def _request(container: Row) -> Amount:
    return _amount(table(table(container, "resources"), "requests"))


def _amount(amounts: Row) -> Amount:
    """Return CPU and memory of a list of quantities. A malformed one counts as none."""
    return Amount(
        _quantity(amounts, "cpu", cpu_millis) / MILLIS,
        _quantity(amounts, "memory", memory_bytes) / GIB,
    )


def _quantity(amounts: Row, name: str, read: Callable[[object], int]) -> int:
    try:
        return read(amounts[name]) if name in amounts else 0
    except InputError:
        return 0
