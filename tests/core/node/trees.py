"""Folders that look like sysfs, a cgroup hierarchy or /proc to whoever reads them."""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

V2_FILES = {"cgroup.controllers": "cpu memory pids\n", "cgroup.procs": ""}
V1_FILES = {"tasks": "", "cgroup.procs": ""}


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    """Write *files*, by their paths below *root*."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def make_cgroup(root: Path, path: str, **files: str) -> Path:
    """Make the cgroup *path*; ``cpu_max="..."`` writes ``cpu.max``."""
    directory = root / path
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("_", ".", 1)).write_text(text)
    return directory


def make_hierarchy(root: Path, paths: Iterable[str] = (), *, version: int = 2) -> Path:
    """Make a hierarchy with the cgroups *paths*."""
    write_files(root, V2_FILES if version == 2 else V1_FILES)
    for path in paths:
        make_cgroup(root, path)
    return root


def make_process(  # noqa: PLR0913 - as much as the kernel tells of a process
    proc: Path,
    pid: int,
    name: str,
    cgroup: Path | None = None,
    *,
    parent: int = 1,
    arguments: Iterable[str] = (),
    age_s: float = 3600.0,
) -> None:
    """Make a process, in *cgroup* where one is given. It began *age_s* ago, or at the boot."""
    started_s = max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - age_s)
    started = int(started_s * os.sysconf("SC_CLK_TCK"))
    stat = f"{pid} ({name}) S {parent} {'0 ' * 17}{started} 0 0\n"
    command_line = "".join(f"{argument}\0" for argument in arguments)
    files = {"comm": f"{name}\n", "stat": stat, "cmdline": command_line}
    write_files(proc, {f"{pid}/{file}": text for file, text in files.items()})
    if cgroup is not None:
        with (cgroup / "cgroup.procs").open("a") as file:
            file.write(f"{pid}\n")
