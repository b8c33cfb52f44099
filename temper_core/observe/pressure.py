"""Pressure stall information (PSI) of the node and of cgroups.

Format: kernel/sched/psi.c (``psi_show``). Averages are percentages there, ratios here.
"""

from collections.abc import Mapping
from pathlib import Path

from temper_core.observe.descriptors import DescriptorBudget, KeptFile
from temper_core.records.snapshots import Pressure, PressureLine

RESOURCES = ("cpu", "io", "memory")


def parse_pressure(content: bytes) -> Pressure:
    """Read a PSI file; raise ValueError where it has no ``some`` line or a line is odd."""
    lines: dict[str, PressureLine] = {}
    for line in content.decode("ascii").splitlines():
        kind, *pairs = line.split()
        values = dict(pair.split("=", 1) for pair in pairs)
        try:
            lines[kind] = PressureLine(
                avg10=_ratio(values["avg10"]),
                avg60=_ratio(values["avg60"]),
                avg300=_ratio(values["avg300"]),
                total_us=int(values["total"]),
            )
        except KeyError as error:
            raise ValueError(f"a pressure line lacks {error}") from error
    if "some" not in lines:
        raise ValueError("there is no 'some' line")
    return Pressure(lines["some"], lines.get("full"))


def _ratio(text: str) -> float:
    percent = float(text)
    if not 0 <= percent <= 100:  # noqa: PLR2004 - per cent; NaN is refused too
        raise ValueError(f"{text} is no percentage")
    return round(percent / 100, 6)


class PressureFiles:
    """The three PSI files of one place, kept open; ``defects`` says what could not be read."""

    def __init__(self, paths: Mapping[str, str], budget: DescriptorBudget) -> None:
        self._files = {resource: KeptFile(path, budget) for resource, path in paths.items()}
        self.defects: tuple[str, ...] = ()

    def read(self) -> dict[str, Pressure]:
        """Return what can be read, by resource; never raises."""
        found: dict[str, Pressure] = {}
        defects = []
        for resource, file in self._files.items():
            try:
                found[resource] = parse_pressure(file.read())
            except OSError as error:
                defects.append(f"pressure: {file.path}: {error.strerror}")
            except ValueError as error:
                defects.append(f"pressure: {file.path}: {error}")
        self.defects = tuple(defects)
        return found

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files.values():
            file.close()


def node_pressure(proc_root: Path | str, budget: DescriptorBudget) -> PressureFiles:
    """Return the node's PSI files; a kernel without PSI, or with ``psi=0``, has defects."""
    paths = {resource: f"{proc_root}/pressure/{resource}" for resource in RESOURCES}
    return PressureFiles(paths, budget)


def cgroup_pressure(folder: str, budget: DescriptorBudget) -> PressureFiles:
    """Return the PSI files of the cgroup v2 directory *folder*."""
    return PressureFiles({name: f"{folder}/{name}.pressure" for name in RESOURCES}, budget)
