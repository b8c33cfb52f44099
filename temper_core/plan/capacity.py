"""The cores that layers of a node may own, counted as the engine counts them."""

from typing import TYPE_CHECKING

from attrs import frozen

from temper_core.records.machine import MachineShape

if TYPE_CHECKING:
    from fractions import Fraction

MILLIS = 1000


def counted(count: int, noun: str) -> str:
    """Format a count with its noun: 1 core, 2 cores."""
    return f"{count} {noun}" + "s" * (count != 1)


@frozen
class Capacity:
    """Cores of ``unit`` CPUs each. No layer may own ``reserved`` of them."""

    unit: int
    cores: int
    reserved: int

    @classmethod
    def of(cls, machine: MachineShape, reserve_cores: int) -> "Capacity":
        """Count *machine*. The engine takes the size of the first core for the size of all."""
        unit = len(machine.siblings[0])
        whole = min(machine.cores, len(machine.cpus) // unit)
        return cls(unit, whole, min(reserve_cores, whole))

    @property
    def fenceable(self) -> int:
        """Cores that layers may own, all of them together."""
        return self.cores - self.reserved

    def cores_for(self, millis: "int | Fraction") -> int:
        """Return how many whole cores *millis* of CPU need, at least one."""
        return max(1, -(-millis // (MILLIS * self.unit)))

    def describe(self) -> str:
        """Return how many cores can be owned, as text."""
        cores = counted(self.cores, "core")
        return f"{self.fenceable} of {cores} can be owned (reserve {self.reserved})"
