"""All cgroup hierarchies of the host: the owner of each cgroup, and the location of its files."""

from pathlib import Path

from temper_core.errors import MachineError
from temper_core.node.cgroups import MOST_OF_MAKER, CgroupTree, detect_cgroups
from temper_core.node.found_pods import CgroupOwner, find_owners, is_kubepods
from temper_core.node.tree_watch import TreeNews, TreeWatch

# On a hybrid host systemd's units are in a hierarchy of its own, the kubelet's pods in all others.
V1_HIERARCHIES = ("name=systemd", "cpu")
MOST_WARNINGS = 5


class HostCgroups:
    """The owners of cgroups on this host. Raises MachineError if no cgroups are mounted."""

    def __init__(self, proc_root: str | Path, cgroup_root: str | Path) -> None:
        mounts = detect_cgroups(proc_root, cgroup_root)
        self._watch = watch = TreeWatch()
        v1 = [mounts.v1[name] for name in V1_HIERARCHIES if name in mounts.v1]
        trees = [CgroupTree(root, watch=watch) for root in v1]
        self._unified = CgroupTree(mounts.unified, watch=watch) if mounts.unified else None
        self._trees = [self._unified, *trees] if self._unified else trees
        if not self._trees:
            raise MachineError(f"{cgroup_root}: no cgroup hierarchy is mounted there")
        # If v1 has the CPU controller, no v2 directory has its files.
        self.sizes_root = mounts.v1.get("cpu") or self._trees[0].root
        self.owners: tuple[CgroupOwner, ...] = ()
        self._has_warned = False
        self._crowded: frozenset[str] = frozenset()

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of cgroup v2, which the engine sees, else those of the first v1 hierarchy."""
        return self._trees[0].paths

    @property
    def kubepods(self) -> Path | None:
        """The top cgroup of Kubernetes, below ``sizes_root``, or ``None`` without a kubelet."""
        for tree in self._trees:
            for path in tree.paths:
                if is_kubepods(path):
                    return self.sizes_root / path
        return None

    def fileno(self) -> int:
        """Return the descriptor that becomes readable after a change, or -1 without a watch."""
        return self._watch.fileno()

    def news(self) -> TreeNews:
        """Return the changes since the last call. ``refresh`` reads them."""
        return self._watch.take()

    def close(self) -> None:
        """Stop watching for changes."""
        self._watch.close()

    def refresh(self) -> bool:
        """Scan the hierarchies. Return whether a cgroup was made or removed."""
        changes = [tree.refresh() for tree in self._trees]
        if has_changed := any(changes):
            hierarchies = [tree.paths for tree in self._trees]
            self.owners = find_owners(hierarchies if self._unified else [(), *hierarchies])
        if any(tree.is_truncated for tree in self._trees) and not self._has_warned:
            self._has_warned = True
            _warn("cgroup_tree_truncated", directories=len(self.paths))
        crowded = frozenset[str]().union(*(tree.crowded for tree in self._trees))
        for owner in sorted(crowded - self._crowded)[:MOST_WARNINGS]:
            _warn("cgroups_left_out", owner=owner, most=MOST_OF_MAKER)
        self._crowded = crowded
        return has_changed

    def directory(self, path: str) -> Path:
        """Return the directory that lists the processes of the cgroup *path*."""
        directories = (tree.root / path for tree in self._trees)
        return next(
            (directory for directory in directories if directory.is_dir()), self.sizes_root / path
        )


def _warn(event: str, **facts: object) -> None:
    import structlog  # noqa: PLC0415 - slow to import, and rarely needed

    structlog.get_logger(__name__).warning(event, **facts)
