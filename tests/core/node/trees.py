"""Folders that look like sysfs, a cgroup hierarchy or /proc to whoever reads them."""

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


def make_process(proc: Path, pid: int, name: str, cgroup: Path | None = None) -> None:
    """Make a process, in *cgroup* where one is given."""
    write_files(proc, {f"{pid}/comm": f"{name}\n"})
    if cgroup is not None:
        with (cgroup / "cgroup.procs").open("a") as file:
            file.write(f"{pid}\n")
