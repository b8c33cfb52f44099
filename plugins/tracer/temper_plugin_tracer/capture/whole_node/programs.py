"""The programs of an installed Perfetto."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from temper_core import MachineError, tracefs_mounts

PROGRAMS = ("traced", "traced_probes", "perfetto")
SYSTEM = "/usr/local/sbin:/usr/sbin:/sbin"
"""Debian has the services there. The path of a service may not."""
TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
"""The mount points at which traced_probes looks for tracefs."""
NOT_INSTALLED = "perfetto is not installed (tracebox, or perfetto with traced and traced_probes)"


@frozen
class Programs:
    """How each program is started, and the tracefs that it uses."""

    commands: Mapping[str, tuple[str, ...]]
    tracefs: Path

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return a command line."""
        return [*self.commands[program], *arguments]


def find_programs(path: str | None = None) -> Programs:
    """Find the programs. Raise MachineError if one is missing, or tracefs is not mounted."""
    box = _which("tracebox", path)
    found = {name: (box, name) if box else (_which(name, path),) for name in PROGRAMS}
    missing = [name for name, command in found.items() if not command[0]]
    if "perfetto" in missing:
        raise MachineError(NOT_INSTALLED)
    if missing:
        raise MachineError(f"perfetto is installed without {' and '.join(missing)}")
    mounts = tracefs_mounts()
    usable = [mount for mount in TRACEFS if mount in mounts]
    if not usable:
        raise MachineError("it needs tracefs, and none is mounted (the chart mounts none)")
    commands = {name: tuple(part for part in each if part) for name, each in found.items()}
    return Programs(commands, usable[0])


def _which(program: str, path: str | None) -> str | None:
    return shutil.which(program, path=path) or (
        shutil.which(program, path=SYSTEM) if path is None else None
    )
