"""The threads that a capture records: the whole node, or some cgroups and processes."""

from collections.abc import Mapping
from typing import Any

from attrs import asdict, frozen

from temper_core import fit

MOST_CGROUPS = 8
MOST_PROCESSES = 65_536
WHOLE_NODE = "the whole node"


@frozen
class CgroupChoice:
    """A cgroup of the unified hierarchy: its id, its depth below the root (0), its directory."""

    id: int
    level: int
    path: str = ""


@frozen
class Selection:
    """The recorded part of the node.

    Of the selected threads every event is recorded, with what wakes them. Of a CPU everything is
    recorded for as long as a selected thread may run or wait there.

    Attributes:
        label: How the selection was asked for: ``pod shop/web``. Empty for the whole node.
        cgroups: Selected with all cgroups below them.
        processes: Selected by tgid, with the processes that they fork.
        cpus: Only events on these CPUs are recorded. Empty for all.

    """

    label: str = ""
    cgroups: tuple[CgroupChoice, ...] = ()
    processes: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()

    @property
    def is_whole_node(self) -> bool:
        """Whether no thread is selected, so that all are recorded."""
        return not self.cgroups and not self.processes

    @property
    def shown(self) -> str:
        """The selection for people."""
        where = f", only on CPU {', '.join(map(str, self.cpus))}" if self.cpus else ""
        return f"{self.label or WHOLE_NODE}{where}"

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Selection":
        """Read what ``document`` has returned."""
        return fit(document, cls, source="selection")
