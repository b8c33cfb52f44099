"""The shape of a machine: its CPUs and the resources that they share."""

from collections import defaultdict
from functools import cached_property

from attrs import define, field, frozen
from attrs.validators import ge, min_len


@frozen
class Cpu:
    """One online logical CPU.

    ``core``, ``socket``, ``node`` and ``llc`` are machine-wide numbers counted from 0: two CPUs
    of one ``core`` are SMT siblings. ``capacity`` is the kernel's relative scale (1024 = fastest).
    """

    id: int = field(validator=ge(0))
    core: int = field(validator=ge(0))
    socket: int = field(default=0, validator=ge(0))
    node: int = field(default=0, validator=ge(0))
    llc: int = field(default=0, validator=ge(0))
    capacity: int = field(default=1024, validator=ge(1))


@define(frozen=True, slots=False)
class MachineShape:
    """The CPUs of a machine. Read from sysfs or a file, or made by ``uniform``.

    ``offline`` are CPUs that are possible or present but not online. ``isolated`` are those that
    ``isolcpus=`` takes from the scheduler.
    """

    architecture: str
    cpus: tuple[Cpu, ...] = field(validator=min_len(1))
    offline: tuple[int, ...] = ()
    isolated: tuple[int, ...] = ()

    @cached_property
    def cores(self) -> int:
        """Number of physical cores with an online CPU."""
        return len({cpu.core for cpu in self.cpus})

    @cached_property
    def threads_per_core(self) -> int:
        """Online CPUs of the widest core: 2 on an SMT machine."""
        return max(len(siblings) for siblings in self.siblings)

    @cached_property
    def sockets(self) -> int:
        """Number of sockets with an online CPU."""
        return len({cpu.socket for cpu in self.cpus})

    @cached_property
    def numa_nodes(self) -> int:
        """Number of NUMA nodes with an online CPU."""
        return len({cpu.node for cpu in self.cpus})

    @cached_property
    def llcs(self) -> int:
        """Number of last-level caches with an online CPU."""
        return len({cpu.llc for cpu in self.cpus})

    @cached_property
    def siblings(self) -> tuple[tuple[int, ...], ...]:
        """CPU ids by core, in the order of the cores."""
        by_core: defaultdict[int, list[int]] = defaultdict(list)
        for cpu in self.cpus:
            by_core[cpu.core].append(cpu.id)
        return tuple(tuple(sorted(by_core[core])) for core in sorted(by_core))

    @cached_property
    def is_hybrid(self) -> bool:
        """Whether the CPUs differ in capacity."""
        return len({cpu.capacity for cpu in self.cpus}) > 1

    def siblings_of(self, cpu: int) -> tuple[int, ...]:
        """Return the CPUs of *cpu*'s core, itself included. Empty for a CPU that is not online."""
        return self._siblings_by_cpu.get(cpu, ())

    @cached_property
    def _siblings_by_cpu(self) -> dict[int, tuple[int, ...]]:
        return {cpu: siblings for siblings in self.siblings for cpu in siblings}

    @classmethod
    def uniform(
        cls,
        cores: int,
        threads_per_core: int = 1,
        *,
        sockets: int = 1,
        numa_nodes: int = 1,
        llcs: int = 1,
        architecture: str = "x86_64",
    ) -> "MachineShape":
        """Return a machine of equal cores. Siblings are numbered as Linux does on x86 VMs."""
        return cls(
            architecture,
            tuple(
                Cpu(
                    id=core * threads_per_core + thread,
                    core=core,
                    socket=core * sockets // cores,
                    node=core * numa_nodes // cores,
                    llc=core * llcs // cores,
                )
                for core in range(cores)
                for thread in range(threads_per_core)
            ),
        )
