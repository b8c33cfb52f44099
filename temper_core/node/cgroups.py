"""The host's cgroup hierarchies: where they are mounted, and which directories they hold.

The engine sees cgroup v2 only. On a hybrid host the controllers, and what the kubelet and the
runtimes make, sit in v1 hierarchies. Those are read too, to say what runs there.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from temper_core.node.cgroup_names import CgroupIdentity, CgroupKind, identify
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
# Which v1 hierarchy tells most about who a process is: systemd's own, then the kubelet's.
V1_BY_WORTH = ("name=systemd", "cpu", "cpuacct", "memory", "pids", "cpuset")
_RESCANS = 3
# The file that every directory of such a hierarchy has.
_PROOF = {"cgroup2": "cgroup.controllers", "cgroup": "tasks"}


@frozen
class CgroupMounts:
    """Where the hierarchies are: cgroup v2 if mounted, and v1 by controller."""

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

    Mount points that the table names below ``/sys/fs/cgroup`` are looked for below *cgroup_root*.
    Where the table does not help, the files there decide.
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
        text = (proc_root / "self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [mount for line in text.splitlines() if (mount := _cgroup_mount(line))]


def _cgroup_mount(line: str) -> _Mount | None:
    # 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
    before, _, after = line.partition(" - ")
    left, right = before.split(" "), after.split(" ")
    if len(left) < 5 or len(right) < 3 or right[0] not in ("cgroup", "cgroup2"):  # noqa: PLR2004 - proc(5)
        return None
    if left[3] != "/":
        # A part of the tree, bound into some container.
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

    The v2 path. Where that says nothing, as on hybrid hosts, the first v1 path by worth that
    does. Without a leading slash, with a trailing one. The root is empty.
    """
    paths: dict[str, str] = {}
    for line in proc_cgroup.splitlines():
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

    A pod and a container have the beginning of their id in the name. Empty where the cgroup
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
        """Whether the directory still has the children that were listed."""
        return (self.inode, self.links, self.changed_ns) == (
            status.st_ino,
            status.st_nlink,
            status.st_mtime_ns,
        )


class CgroupTree:
    """The directories of one hierarchy, kept up to date at the price of one stat each.

    A cgroup directory counts its children in its links, and each child has an inode of its own:
    while both are as known, nothing was made or removed, and nothing is listed anew. *watch* is
    told of every directory, so that it hears when a refresh would find something.
    """

    def __init__(
        self, root: Path, limit: int = MOST_DIRECTORIES, watch: TreeWatch | None = None
    ) -> None:
        self._root = os.fspath(root)
        self._limit = limit
        self._watch = watch
        self._listings: dict[str, _Listing] = {}
        self.is_truncated = False

    @property
    def root(self) -> Path:
        """Where the hierarchy is mounted."""
        return Path(self._root)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every directory as of the last refresh, without outer slashes. The root is empty."""
        return tuple(self._listings)

    @property
    def inodes(self) -> dict[str, int]:
        """Inode by path, which for cgroup v2 is the cgroup's id. Paths as in ``paths``."""
        return {path: listing.inode for path, listing in self._listings.items()}

    def refresh(self) -> bool:
        """Look again. Tell whether any directory appeared, vanished or was made anew."""
        before = self.inodes
        for _ in range(_RESCANS):
            if self._walk():
                break
        if self._watch is not None:
            for path in before.keys() - self._listings.keys():
                self._watch.remove(f"{self._root}/{path}")
        return before != self.inodes

    def _walk(self) -> bool:
        """Visit every directory. False if a known child had gone, so that its parent is stale."""
        found: dict[str, _Listing] = {}
        stale: set[str] = set()
        pending = [""]
        while pending and len(found) < self._limit:
            path = pending.pop()
            listing = self._listing(path)
            if listing is None:
                stale.add(path.rpartition("/")[0])
                continue
            found[path] = listing
            prefix = f"{path}/" if path else ""
            pending.extend(prefix + child for child in reversed(listing.children))
        self.is_truncated = bool(pending)
        for parent in stale & found.keys():
            found[parent] = evolve(found[parent], links=-1)
        self._listings = found
        return not stale

    def _listing(self, path: str) -> _Listing | None:
        directory = f"{self._root}/{path}"
        known = self._listings.get(path)
        try:
            status = os.stat(directory)  # noqa: PTH116 - every directory at every poll; Path.stat costs three times as much
            if known is not None and known.is_of(status):
                return known
            if self._watch is not None:  # before it is listed, so that nothing falls in between
                self._watch.add(directory, path)
            children = tuple(_subdirectories(directory))
            return _Listing(status.st_ino, status.st_nlink, status.st_mtime_ns, children)
        except OSError:
            return None


def _subdirectories(directory: str) -> Iterator[str]:
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    yield from sorted(names)
