"""Pressure stall information (PSI) of the node and of cgroups.

The format is that of kernel/sched/psi.c (``psi_show``). Averages are percentages there and ratios
here.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from attrs import define

from temper_core.observe.descriptors import DescriptorBudget, KeptFile
from temper_core.records.snapshots import Pressure, PressureLine

RESOURCES = ("cpu", "io", "memory")
_MOST_RATIOS = 10_001
_LINE = rb"%s avg10=([0-9.]+) avg60=([0-9.]+) avg300=([0-9.]+) total=([0-9]+)\n"
_FILE = re.compile(_LINE % b"some" + rb"(?:%s)?" % (_LINE % b"full"))


def parse_pressure(content: bytes) -> Pressure:
    """Parse a PSI file. Raise ValueError if ``some`` is missing or a line is malformed."""
    match = _FILE.fullmatch(content)
    if match is None:
        raise ValueError("is not in the format of a pressure file")
    ten, sixty, long, total, *full = match.groups()
    ratios = _RATIOS
    some = PressureLine(ratios[ten], ratios[sixty], ratios[long], int(total))
    if full[0] is None:
        return Pressure(some)
    ten, sixty, long, total = full
    return Pressure(some, PressureLine(ratios[ten], ratios[sixty], ratios[long], int(total)))


class _Ratios(dict[bytes, float]):
    """A cache of ratios by the kernel's text of a percentage. There are some 10,000 texts."""

    def __missing__(self, text: bytes) -> float:
        percent = float(text)
        if not 0 <= percent <= 100:  # noqa: PLR2004 - per cent
            raise ValueError(f"{text.decode()} is no percentage")
        ratio = round(percent / 100, 6)
        if len(self) < _MOST_RATIOS:
            self[text] = ratio
        return ratio


_RATIOS = _Ratios()


@define(eq=False)
class _Known:
    """A PSI file and its last content. ``is_calm`` is true if all averages were zero."""

    file: KeptFile
    raw: bytes = b""
    pressure: Pressure | None = None
    is_calm: bool = False

    def read(self) -> Pressure:
        raw = self.file.read()
        if self.pressure is None or raw != self.raw:
            self.pressure = pressure = parse_pressure(raw)
            self.raw, self.is_calm = raw, _is_calm(pressure.some) and _is_calm(pressure.full)
        return self.pressure


def _is_calm(line: PressureLine | None) -> bool:
    return line is None or not (line.avg10 or line.avg60 or line.avg300)


class PressureFiles:
    """The three PSI files of one place, kept open. ``defects`` names the unreadable ones."""

    def __init__(self, paths: Mapping[str, str], budget: DescriptorBudget) -> None:
        self._files = {resource: _Known(KeptFile(path, budget)) for resource, path in paths.items()}
        self.defects: tuple[str, ...] = ()

    def read(self, unmoved: Collection[str] = ()) -> dict[str, Pressure]:
        """Return the readable pressures by resource. Never raises.

        *unmoved* are resources without a wait on the whole node since the last look. For these, a
        file that was calm cannot have changed, and is not read.
        """
        pressures: dict[str, Pressure] = {}
        defects = []
        for resource, source in self._files.items():
            if source.is_calm and source.pressure is not None and resource in unmoved:
                pressures[resource] = source.pressure
                continue
            try:
                pressures[resource] = source.read()
            except OSError as error:
                defects.append(f"pressure: {source.file.path}: {error.strerror}")
            except ValueError as error:
                defects.append(f"pressure: {source.file.path}: {error}")
        self.defects = tuple(defects)
        return pressures

    def close(self) -> None:
        """Close the files."""
        for source in self._files.values():
            source.file.close()


def unmoved(before: Mapping[str, Pressure], now: Mapping[str, Pressure]) -> frozenset[str]:
    """Return the resources for which no task waited between two looks at the node."""
    return frozenset(
        resource
        for resource, pressure in now.items()
        if resource in before and _totals(pressure) == _totals(before[resource])
    )


def _totals(pressure: Pressure) -> tuple[int, int]:
    return pressure.some.total_us, pressure.full.total_us if pressure.full else 0


def node_pressure(proc_root: Path | str, budget: DescriptorBudget) -> PressureFiles:
    """Return the node's PSI files. They have defects without PSI or with ``psi=0``."""
    paths = {resource: f"{proc_root}/pressure/{resource}" for resource in RESOURCES}
    return PressureFiles(paths, budget)


def cgroup_pressure(folder: str, budget: DescriptorBudget) -> PressureFiles:
    """Return the PSI files of the cgroup v2 directory *folder*."""
    return PressureFiles({name: f"{folder}/{name}.pressure" for name in RESOURCES}, budget)
