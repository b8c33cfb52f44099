"""How layers lie on the NUMA nodes and last-level caches of a machine."""

from collections.abc import Callable, Collection

from temper_core.node.cpulist import format_cpulist
from temper_core.records.machine import Cpu, MachineShape


class Spread:
    """The places of a machine's CPUs."""

    def __init__(self, machine: MachineShape) -> None:
        self._cpus = {cpu.id: cpu for cpu in machine.cpus}
        self._of_node = len(machine.cpus) // machine.numa_nodes
        self._of_cache = len(machine.cpus) // machine.llcs

    def of(self, cpus: Collection[int]) -> str:
        """Return the CPUs of a layer and what they span, for people."""
        nodes, caches = self._spans(cpus)
        return f"CPUs {format_cpulist(sorted(cpus)) or 'none'} on {nodes} nodes, {caches} caches"

    def is_torn(self, cpus: Collection[int]) -> bool:
        """Whether the CPUs of a layer would have had room on fewer nodes."""
        nodes, _ = self._spans(cpus)
        return nodes > -(-len(cpus) // self._of_node)

    def _spans(self, cpus: Collection[int]) -> tuple[int, int]:
        return self._count(cpus, lambda cpu: cpu.node), self._count(cpus, lambda cpu: cpu.llc)

    def _count(self, cpus: Collection[int], place: Callable[[Cpu], int]) -> int:
        return len({place(self._cpus[cpu]) for cpu in cpus})
