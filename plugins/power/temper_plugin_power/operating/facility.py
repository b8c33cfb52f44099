"""The surroundings of nodes as a facility reports them, and their effect on the model of a node."""

from collections.abc import Iterable, Mapping
from math import floor, log10

from attrs import evolve, field, frozen

from temper_plugin_power.operating.twin import REFERENCE_RACK_WATTS

KEPT_DIGITS = 3
"""Of powers. The state of every node is written when an input changes, so noise is left out."""
STEPS_PER_DEGREE = 2


@frozen
class Facility:
    """The measurements around the nodes. None is not known."""

    ambient_celsius: float | None = None
    it_watts: float | None = None
    """The power of all machines."""
    cooling_watts: float | None = None
    zone_celsius: Mapping[str, float] = field(factory=dict)
    """The temperature of each cooling zone."""

    def celsius_of(self, zone: str) -> float | None:
        """Return the temperature around a node in a cooling *zone*, empty for none.

        A zone that is not measured takes the average of all.
        """
        return self.zone_celsius.get(zone, self.ambient_celsius)

    @property
    def pue(self) -> float | None:
        """The power of machines and cooling by that of machines, to a hundredth.

        None if either is not known, or the machines use none.
        """
        if not self.it_watts or self.cooling_watts is None:
            return None
        return round((self.it_watts + self.cooling_watts) / self.it_watts, 2)

    @property
    def steady(self) -> "Facility":
        """The same in steps: half degrees, and powers of three digits."""
        ambient = self.ambient_celsius
        return evolve(
            self,
            ambient_celsius=None if ambient is None else _half_degrees(ambient),
            it_watts=_rounded(self.it_watts),
            cooling_watts=_rounded(self.cooling_watts),
            zone_celsius={zone: _half_degrees(each) for zone, each in self.zone_celsius.items()},
        )


@frozen
class Supply:
    """The load of what supplies a node, and its capacity, in watts. 0 is a load not known."""

    watts: float = 0.0
    capacity_watts: float = REFERENCE_RACK_WATTS


def supply_of(facility: Facility, rack_watts: float, capacity_watts: float) -> Supply:
    """Return the supply of a node: that of its rack, else that of all machines.

    *rack_watts* is 0 for a node without a rack. The power of all machines counts only with a
    *capacity_watts* above 0, since the capacity of a rack is no yardstick for it.
    """
    if rack_watts > 0:
        return Supply(rack_watts)
    if capacity_watts > 0 and facility.it_watts is not None:
        return Supply(facility.it_watts, capacity_watts)
    return Supply()


def rack_totals(nodes: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    """Return the watts of each rack. *nodes* are pairs of rack and watts; an empty rack is none."""
    totals: dict[str, float] = {}
    for rack, watts in nodes:
        if rack:
            totals[rack] = totals.get(rack, 0.0) + watts
    return totals


def _half_degrees(celsius: float) -> float:
    return round(celsius * STEPS_PER_DEGREE) / STEPS_PER_DEGREE


def _rounded(watts: float | None) -> float | None:
    if not watts:
        return watts
    return round(watts, KEPT_DIGITS - 1 - floor(log10(abs(watts))))
