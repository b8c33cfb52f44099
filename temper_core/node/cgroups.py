"""The host's cgroup hierarchies: their mount points and directories.

The engine sees cgroup v2 only. On a hybrid host the controllers, and the cgroups of the kubelet and
the runtimes, are in v1 hierarchies. These are read too, to find the workloads there.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from attrs import evolve, field, frozen

from temper_core.kernel_text import kernel_lines, read_kernel_text
from temper_core.node.cgroup_names import CgroupIdentity, CgroupKind, forget, identify, maker_of
from temper_core.node.pod_index import PodIndex
from temper_core.node.tree_watch import TreeWatch

__all__ = [
    "CgroupIdentity",
    "CgroupKind",
    "CgroupMounts",
    "CgroupTree",
    "PodIndex",
    "detect_cgroups",
    "identify",
    "thread_cgroup",
    "thread_owner",
]

DEFAULT_ROOT = Path("/sys/fs/cgroup")
MOST_DIRECTORIES = 20_000
LONGEST_PATH = 512
"""Characters of a path that is read. Nothing that names a pod or a unit makes longer ones. The
threads of longer ones belong to the cgroup above."""
MOST_OF_MAKER = 2_000
"""Directories of one pod, container, unit or user, so that none of them hides those of others."""
# The v1 hierarchies by how well they identify a process: systemd's own, then the kubelet's.
V1_BY_WORTH = ("name=systemd", "cpu", "cpuacct", "memory", "pids", "cpuset")
_RESCANS = 3
# The file that every directory of such a hierarchy has.
_PROOF = {"cgroup2": "cgroup.controllers", "cgroup": "tasks"}


@frozen
class CgroupMounts:
    """The mount points of the hierarchies: cgroup v2 if mounted, and v1 by controller."""

    unified: Path | None = None
    v1: Mapping[str, Path] = field(factory=dict)

    @property
    def is_hybrid(self) -> bool:
        """Whether v2 is mounted beside v1 controllers."""
        return self.unified is not None and bool(self.v1)


@frozen
class _Mount:
    point: Path
    kind: str
    options: frozenset[str]


def detect_cgroups(
    proc_root: Path | str = Path("/proc"), cgroup_root: Path | str = DEFAULT_ROOT
) -> CgroupMounts:
    """Find the hierarchies below *cgroup_root*, through the mount table of *proc_root*.

    The table's mount points below ``/sys/fs/cgroup`` are looked up below *cgroup_root*. If none of
    them exists, the files below *cgroup_root* decide.
    """
    root = Path(cgroup_root)
    mounts = [_moved(mount, root) for mount in _mount_table(Path(proc_root))]
    if root != DEFAULT_ROOT:
        mounts = [mount for mount in mounts if mount.point.is_relative_to(root)]
    mounts = [mount for mount in mounts if (mount.point / _PROOF[mount.kind]).exists()]
    unified = [mount.point for mount in mounts if mount.kind == "cgroup2"]
    v1 = {
        option: mount.point
        for mount in mounts
        if mount.kind == "cgroup"
        for option in mount.options
    }
    if not unified and not v1:
        return _by_files(root)
    return CgroupMounts(min(unified, key=lambda point: len(point.parts), default=None), v1)


def _mount_table(proc_root: Path) -> list[_Mount]:
    try:
        text = read_kernel_text(proc_root / "self/mountinfo")
    except OSError:
        return []
    return [mount for line in kernel_lines(text) if (mount := _cgroup_mount(line))]


def _cgroup_mount(line: str) -> _Mount | None:
    # 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
    before, _, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if len(left) < 5 or len(right) < 3 or right[0] not in ("cgroup", "cgroup2"):  # noqa: PLR2004 - proc(5)
        return None
    if left[3] != "/":
        # A bind mount of a part of the tree, as in containers.
        return None
    point = Path(left[4].replace("\\040", " "))
    return _Mount(point, right[0], frozenset(right[2].split(",")) - {"rw", "ro", "xattr"})


def _moved(mount: _Mount, root: Path) -> _Mount:
    is_elsewhere = not mount.point.is_relative_to(DEFAULT_ROOT)
    if root == DEFAULT_ROOT or is_elsewhere or mount.point.is_relative_to(root):
        return mount
    return _Mount(root / mount.point.relative_to(DEFAULT_ROOT), mount.kind, mount.options)


def _by_files(root: Path) -> CgroupMounts:
    for candidate in (root, root / "unified"):
        if (candidate / "cgroup.controllers").exists():
            return CgroupMounts(candidate, _v1_by_files(root))
    return CgroupMounts(None, _v1_by_files(root))


def _v1_by_files(root: Path) -> Mapping[str, Path]:
    names = {"name=systemd": "systemd", **{name: name for name in V1_BY_WORTH[1:]}}
    return {
        name: root / folder for name, folder in names.items() if (root / folder / "tasks").exists()
    }


def thread_cgroup(proc_cgroup: str) -> str:
    """Return a thread's cgroup from the text of its ``/proc/<pid>/cgroup``.

    It is the v2 path. If that is the root, as on hybrid hosts, it is the first other path in the
    order of ``V1_BY_WORTH``. It has a trailing slash and no leading one. The root is empty.
    """
    paths: dict[str, str] = {}
    for line in kernel_lines(proc_cgroup):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in ("",) if number == "0" else controllers.split(","):
            paths[controller] = path.strip("/")
    for controller in ("", *V1_BY_WORTH):
        if paths.get(controller):
            return paths[controller] + "/"
    return ""


def thread_owner(proc_cgroup: str) -> str:
    """Name a thread's pod, container, unit or workload from its ``/proc/<pid>/cgroup``.

    The name of a pod or container includes the start of its id. The name is empty if the cgroup
    belongs to none of them.
    """
    identity = identify(thread_cgroup(proc_cgroup))
    if identity.kind is CgroupKind.POD:
        return f"pod-{identity.uid[:8]}"
    if identity.kind is CgroupKind.CONTAINER:
        return f"{identity.name}-{identity.runtime_id[:12]}"
    return identity.name


@frozen
class _Listing:
    inode: int
    links: int
    changed_ns: int
    children: tuple[str, ...]

    def is_of(self, status: os.stat_result) -> bool:
        """Whether the directory still has the listed children."""
        return (self.inode, self.links, self.changed_ns) == (
            status.st_ino,
            status.st_nlink,
            status.st_mtime_ns,
        )


class CgroupTree:
    """The directories of one hierarchy, kept up to date with one stat per directory.

    The link count of a cgroup directory counts its children, and each child has its own inode.
    While both are unchanged, nothing was made or removed, and nothing is listed again. Every
    directory is added to *watch*, so that it reports when a refresh would find a change.

    ``crowded`` are the makers of more directories than are read (``maker_of``).
    """

    def __init__(
        self, root: Path, limit: int = MOST_DIRECTORIES, watch: TreeWatch | None = None
    ) -> None:
        self._root = os.fspath(root)
        self._limit = limit
        self._watch = watch
        self._listings: dict[str, _Listing] = {}
        self.is_truncated = False
        self.crowded: frozenset[str] = frozenset()

    @property
    def root(self) -> Path:
        """The mount point of the hierarchy."""
        return Path(self._root)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every directory at the last refresh, without outer slashes. The root is empty."""
        return tuple(self._listings)

    @property
    def inodes(self) -> dict[str, int]:
        """Inode by path. For cgroup v2 the inode is the cgroup's id. The paths are ``paths``."""
        return {path: listing.inode for path, listing in self._listings.items()}

    def refresh(self) -> bool:
        """Scan again. Return whether any directory appeared, vanished or was recreated."""
        before = self.inodes
        for _ in range(_RESCANS):
            if self._walk():
                break
        removed = before.keys() - self._listings.keys()
        forget(removed)
        if self._watch is not None:
            for path in removed:
                self._watch.remove(f"{self._root}/{path}")
        return before != self.inodes

    def _walk(self) -> bool:
        """Visit every directory. Return False if a listed child had gone: its parent is stale."""
        listings: dict[str, _Listing] = {}
        stale: set[str] = set()
        room = _Room()
        pending = [""]
        while pending and len(listings) < self._limit:
            path = pending.pop()
            listing = self._listing(path)
            if listing is None:
                stale.add(path.rpartition("/")[0])
                continue
            listings[path] = listing
            prefix = f"{path}/" if path else ""
            pending.extend(reversed(room.of(path, [prefix + child for child in listing.children])))
        self.is_truncated, self.crowded = bool(pending), frozenset(room.crowded)
        for parent in stale & listings.keys():
            listings[parent] = evolve(listings[parent], links=-1)
        self._listings = listings
        return not stale

    def _listing(self, path: str) -> _Listing | None:
        directory = f"{self._root}/{path}"
        before = self._listings.get(path)
        try:
            status = os.stat(directory)  # noqa: PTH116 - every directory at every poll; Path.stat costs three times as much
            if before is not None and before.is_of(status):
                return before
            if self._watch is not None:  # before the listing, so that no change is missed
                self._watch.add(directory, path)
            is_owned = identify(path).kind is not CgroupKind.OTHER
            children = tuple(_subdirectories(directory, MOST_OF_MAKER + 1 if is_owned else None))
            return _Listing(status.st_ino, status.st_nlink, status.st_mtime_ns, children)
        except OSError:
            return None


@frozen
class _Room:
    """Counts the directories of each maker in one walk."""

    _made: Counter[str] = field(factory=Counter)
    crowded: set[str] = field(factory=set)

    def of(self, parent: str, paths: list[str]) -> list[str]:
        """Return those of *paths*, which are below *parent*, whose makers have room for them."""
        if maker_of(parent) in self.crowded:
            return []
        fitting = []
        for path in paths:
            if len(path) > LONGEST_PATH:
                continue
            maker = maker_of(path)
            if self._made[maker] < MOST_OF_MAKER:
                self._made[maker] += 1
                fitting.append(path)
            else:
                self.crowded.add(maker)
        return fitting


def _subdirectories(directory: str, most: int | None = None) -> Iterator[str]:
    with os.scandir(directory) as entries:
        names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        yield from sorted(islice(names, most))
