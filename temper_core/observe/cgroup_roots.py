"""Where the cgroup hierarchies of a host are mounted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from attrs import frozen


@frozen
class CgroupRoots:
    """Mount points. An empty string for a hierarchy that is not there.

    ``unified`` is cgroup v2. The others are v1 controllers of a hybrid host.
    """

    unified: str = "/sys/fs/cgroup"
    cpu: str = ""
    cpuacct: str = ""
    memory: str = ""
    cpuset: str = ""

    @classmethod
    def of(cls, unified: Path | None, v1: Mapping[str, Path]) -> Self:
        """Take what is mounted: cgroup v2, if it is, and the controllers of version 1 by name."""
        names = ("cpu", "cpuacct", "memory", "cpuset")
        controllers = {name: str(v1[name]) for name in names if name in v1}
        return cls(unified=str(unified or ""), **controllers)
