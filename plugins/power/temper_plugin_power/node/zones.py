"""The zones of RAPL that the kernel's powercap shows: packages, and the memory beside them."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import frozen

from temper_plugin_power.node.kernel_numbers import known_number, read_text

CONTROL_TYPES = ("intel-rapl", "intel-rapl-mmio")
"""In the order of preference. Both show the same packages, so only one of them counts. AMD's
processors are of the first type, too."""
PACKAGE = re.compile(r"package-[0-9]+(-die-[0-9]+)?")
DRAM = "dram"
MASKED = (
    "its zones cannot be read: container runtimes mask /sys/devices/virtual/powercap; mount it "
    "elsewhere (agent.powercap of the chart)"
)
LIMIT = "constraint_0_power_limit_uw"
MOST_ZONES = 32


@frozen
class Zone:
    """A zone with a counter of energy, at *path*."""

    name: str
    path: Path
    range_uj: int
    """The counter begins again at 0 after it. 0 is not known."""

    @property
    def energy(self) -> Path:
        """The counter, in microjoules."""
        return self.path / "energy_uj"


@frozen
class Package:
    """A processor package. Its limit is that of the zone, of the longest time window."""

    zone: Zone
    dram: Zone | None
    max_uw: int
    """The largest limit, in microwatts. 0 is not known."""

    @property
    def name(self) -> str:
        """Its name in the kernel, such as ``package-0``."""
        return self.zone.name

    @property
    def limit(self) -> Path:
        """The file of the limit, in microwatts."""
        return self.zone.path / LIMIT


@frozen
class Powercap:
    """The packages of this machine. *why_none* is the reason if there are none."""

    packages: tuple[Package, ...] = ()
    why_none: str = ""


def find_packages(top: Path) -> Powercap:
    """Return the packages below the directory of powercap, or of a mount of its devices."""
    if not top.is_dir():
        return Powercap(
            why_none=f"{top} does not exist: a virtual machine, or a kernel without intel_rapl"
        )
    for control_type in CONTROL_TYPES:
        paths = _numbered(top, control_type) or _numbered(top / control_type, control_type)
        if packages := tuple(_packages(paths))[:MOST_ZONES]:
            return Powercap(packages)
        if paths and not any(map(_zone, paths)):
            return Powercap(why_none=f"{top}: {MASKED}")
    return Powercap(why_none=f"{top} has no package zone of RAPL: intel_rapl_msr is not loaded")


def _packages(paths: Iterable[Path]) -> Iterator[Package]:
    # A zone that is no package is the platform (psys), which contains the packages.
    for path in paths:
        zone = _zone(path)
        if zone is not None and PACKAGE.fullmatch(zone.name):
            parts = map(_zone, _numbered(path, path.name))
            dram = next((part for part in parts if part is not None and part.name == DRAM), None)
            yield Package(zone, dram, known_number(path / "constraint_0_max_power_uw") or 0)


def _numbered(directory: Path, prefix: str) -> list[Path]:
    """Return the entries ``PREFIX:N`` of a directory in the order of their numbers."""
    numbers = (path.name.removeprefix(f"{prefix}:") for path in directory.glob(f"{prefix}:*"))
    known = sorted(int(number) for number in numbers if number.isascii() and number.isdigit())
    return [directory / f"{prefix}:{number}" for number in known]


def _zone(path: Path) -> Zone | None:
    """Return the zone at *path*, None if the kernel gives no name for it."""
    try:
        return Zone(read_text(path / "name"), path, known_number(path / "max_energy_range_uj") or 0)
    except OSError:
        return None
