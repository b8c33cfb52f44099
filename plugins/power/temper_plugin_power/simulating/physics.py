"""The model of power and slowdown: simple, linear, and not fitted to any hardware."""

from collections.abc import Iterable

from attrs import frozen

from temper_plugin_power.simulating.jobs import Kind

CORE_USE = {"high": 1.0, "medium": 0.6, "low": 0.3}
"""Of a core's dynamic power, by intensity."""
SLOWED_BY = {"high": 1.0, "medium": 0.5, "low": 0.2}
"""The part of a cut in dynamic power that a job loses in speed, by sensitivity."""


@frozen
class Machine:
    """A node. The power above *idle_watts* is shared equally by its cores."""

    cores: int = 32
    idle_watts: float = 100.0
    max_watts: float = 400.0

    @property
    def core_watts(self) -> float:
        """The dynamic power of a core in full use."""
        return (self.max_watts - self.idle_watts) / self.cores


def job_watts(kind: Kind, machine: Machine) -> float:
    """Return the dynamic power of a job without a cap."""
    return kind.cores * CORE_USE[kind.intensity] * machine.core_watts


def power_left(kinds: Iterable[Kind], machine: Machine, cap_pct: float) -> float:
    """Return the share of their dynamic power that the jobs of a node get under its cap, 0 to 1.

    *cap_pct* is in percent of the node's maximum.
    """
    asked = sum(job_watts(kind, machine) for kind in kinds)
    allowed = max(0.0, machine.max_watts * cap_pct / 100 - machine.idle_watts)
    return 1.0 if asked <= allowed else allowed / asked


def speed(kind: Kind, left: float) -> float:
    """Return the speed of a job that gets the share *left* of its dynamic power; 1 is full."""
    return 1 - SLOWED_BY[kind.sensitivity] * (1 - left)
