"""The power of the packages, reading by reading."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from attrs import field, frozen

from temper_plugin_power.node.energy import MICRO, EnergyMeter
from temper_plugin_power.node.kernel_numbers import known_number, read_number
from temper_plugin_power.node.zones import Package, Zone


@frozen
class PackageReading:
    """The readings of a package. None is not known."""

    name: str
    watts: float | None = None
    dram_watts: float | None = None
    limit_watts: float | None = None
    max_watts: float | None = None
    problem: str = ""
    """Why the counter cannot be read."""


class PackageReader:
    """Reads packages, and remembers their counters."""

    def __init__(self, packages: Sequence[Package]) -> None:
        self._packages = packages
        self._meters: dict[Path, EnergyMeter] = {}

    def read(self, now_s: float) -> "Power":
        """Return the power of the packages since the last call. Clock: monotonic."""
        return Power(tuple(self._read(package, now_s) for package in self._packages))

    def _read(self, package: Package, now_s: float) -> PackageReading:
        watts, problem = self._watts(package.zone, now_s)
        dram_watts = self._watts(package.dram, now_s)[0] if package.dram else None
        limit_uw = known_number(package.limit)
        return PackageReading(
            package.name,
            watts=watts,
            dram_watts=dram_watts,
            limit_watts=None if limit_uw is None else limit_uw / MICRO,
            max_watts=package.max_uw / MICRO if package.max_uw else None,
            problem=problem,
        )

    def _watts(self, zone: Zone, now_s: float) -> tuple[float | None, str]:
        meter = self._meters.setdefault(zone.energy, EnergyMeter())
        try:
            energy_uj = read_number(zone.energy)
        except OSError as error:
            meter.forget()
            return None, why_unreadable(zone.energy, error)
        if energy_uj is None:
            meter.forget()
            return None, f"{zone.energy}: is not a number"
        return meter.watts(now_s, energy_uj, zone.range_uj), ""


@frozen
class Power:
    """The power of a node in one window. A sum is None unless every package is known."""

    packages: tuple[PackageReading, ...] = field(default=())

    @property
    def package_watts(self) -> float | None:
        """The sum of the packages."""
        return _sum([package.watts for package in self.packages])

    @property
    def dram_watts(self) -> float | None:
        """The sum of their memory."""
        return _sum([package.dram_watts for package in self.packages])

    @property
    def problems(self) -> tuple[str, ...]:
        """Why counters cannot be read."""
        return tuple(package.problem for package in self.packages if package.problem)


def why_unreadable(path: Path, error: OSError) -> str:
    """Return why a counter cannot be read, with its mode. Since 5.10 only root may read it."""
    reason = f"{path}: {error.strerror}"
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return reason
    return f"{reason} (mode {mode:04o}, user {os.geteuid()})"


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None
