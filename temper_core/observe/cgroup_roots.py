"""The mount points of the host's cgroup hierarchies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from attrs import frozen


@frozen
class CgroupRoots:
    """Mount points, empty for a missing hierarchy.

    ``unified`` is cgroup v2. The others are v1 controllers of a hybrid host.
    """

    unified: str = "/sys/fs/cgroup"
    cpu: str = ""
    cpuacct: str = ""
    memory: str = ""
    cpuset: str = ""

    @classmethod
    def of(cls, unified: Path | None, v1: Mapping[str, Path]) -> Self:
        """Make the roots of cgroup v2, if it is mounted, and of the v1 controllers by name."""
        names = ("cpu", "cpuacct", "memory", "cpuset")
        controllers = {name: str(v1[name]) for name in names if name in v1}
        return cls(unified=str(unified or ""), **controllers)
