"""From a request to the cgroups and processes that the kernel compares."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from temper_core import (
    InputError,
    NodeLookup,
    Pod,
    Snapshot,
    ThreadSample,
    cgroup_namespace,
    parse_cgroup,
)
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.capture.selection import (
    MOST_CGROUPS,
    MOST_PROCESSES,
    CgroupChoice,
    Selection,
)

CGROUP2 = "cgroup2"


@frozen
class Chooser:
    """Finds what a request names, on this node as of its last plan and its last snapshot."""

    lookup: NodeLookup
    snapshot: Snapshot | None = None
    proc_root: str = "/proc"
    cpus: frozenset[int] | None = None
    """The CPUs of the node, None if they are not known."""

    def choose(self, request: TraceRequest) -> Selection:
        """Return the selection. Raise InputError if something of it is not on this node."""
        self._refuse_unknown(request.cpus)
        if request.pod:
            return self._of_pod(request)
        if request.cgroup:
            if not request.cgroup.strip("/"):
                raise InputError(
                    f"{request.cgroup!r} is the root of all cgroups: the whole node is captured "
                    "where no cgroup is named"
                )
            cgroups = self._cgroups([request.cgroup])
            if not cgroups:
                raise InputError(f"there is no cgroup {request.cgroup!r} in the unified hierarchy")
            return Selection(f"cgroup {request.cgroup}", cgroups, cpus=request.cpus)
        if request.process is not None:
            if not Path(self.proc_root, str(request.process)).exists():
                raise InputError(f"there is no process {request.process}")
            label = f"process {request.process}"
            return Selection(label, processes=(request.process,), cpus=request.cpus)
        return Selection(cpus=request.cpus)

    def _refuse_unknown(self, cpus: Iterable[int]) -> None:
        if self.cpus is None:
            return
        for cpu in sorted(set(cpus) - self.cpus):
            raise InputError(
                f"cpus: the node has no CPU {cpu}: it has {len(self.cpus)}, up to {max(self.cpus)}"
            )

    def _of_pod(self, request: TraceRequest) -> Selection:
        pod = self._pod(request.pod)
        label = f"pod {pod.key}"
        if request.container:
            label += f", container {request.container}"
            threads = self._threads_of(pod, request.container)
            cgroups = self._cgroups({thread.cgroup for thread in threads})
            processes = () if cgroups else tuple({thread.tgid for thread in threads})
        else:
            cgroups = self._cgroups(pod.cgroups)
            processes = () if cgroups else tuple(self._processes_of(pod))
        if not cgroups and not processes:
            raise InputError(f"{label}: no cgroup and no process of it is known")
        return Selection(label, cgroups, processes[:MOST_PROCESSES], request.cpus)

    def _pod(self, name: str) -> Pod:
        found = self.lookup.pod(name)
        if found is not None:
            return found
        named = [pod for pod in self.lookup.pods() if pod.name == name]
        if len(named) == 1:
            return named[0]
        problem = "names several pods, give NAMESPACE/NAME" if named else "is no pod of this node"
        raise InputError(f"{name!r} {problem}")

    def _threads_of(self, pod: Pod, container: str) -> list[ThreadSample]:
        threads = self.snapshot.threads if self.snapshot is not None else ()
        own = [thread for thread in threads if (thread.namespace, thread.pod) == _names(pod)]
        chosen = [thread for thread in own if thread.container == container]
        if not chosen:
            names = ", ".join(sorted({thread.container for thread in own})) or "none"
            raise InputError(
                f"no thread of a container {container!r} of {pod.key} has run lately; "
                f"containers whose threads have: {names}"
            )
        return chosen

    def _cgroups(self, paths: Iterable[str]) -> tuple[CgroupChoice, ...]:
        """Return those of *paths* that are in the unified hierarchy and hold processes."""
        root = unified_root(self.proc_root)
        if root is None:
            return ()
        choices = []
        for path in sorted(paths):
            parts = [part for part in path.split("/") if part]
            directory = root.joinpath(*parts)
            if not parts or ".." in parts or not _is_populated(directory):
                continue
            with suppress(OSError):
                identity = directory.stat().st_ino
                choices.append(CgroupChoice(identity, len(parts), str(directory)))
        return tuple(choices[:MOST_CGROUPS])

    def _processes_of(self, pod: Pod) -> Iterator[int]:
        """Yield the processes of a pod whose cgroups are in v1 hierarchies."""
        with os.scandir(self.proc_root) as entries:
            for entry in entries:
                if not entry.name.isdecimal():
                    continue
                with suppress(OSError):
                    content = Path(entry.path, "cgroup").read_bytes()
                    found = self.lookup.pod_of_cgroup(parse_cgroup(content, cgroup_namespace()))
                    if found is not None and found.uid == pod.uid:
                        yield int(entry.name)


def unified_root(proc_root: str = "/proc") -> Path | None:
    """Return the mount point of the whole cgroup v2 hierarchy, None without one.

    From a private cgroup namespace, such as a container's, the kernel shows the root of a mount
    outside of it as ``/../..`` (cgroup_namespaces(7)).
    """
    try:
        text = Path(proc_root, "self/mountinfo").read_bytes().decode(errors="surrogateescape")
    except OSError:
        return None
    for line in text.split("\n"):
        left, _, right = (part.split(" ") for part in line.partition(" - "))
        if right[:1] == [CGROUP2] and set(left[3].split("/")) <= {"", ".."}:
            point = Path(left[4].replace("\\040", " "))
            # Every cgroup but the root of the hierarchy has this file (cgroup-v2.rst).
            if not (point / "cgroup.type").exists():
                return point
    return None


def _is_populated(directory: Path) -> bool:
    with suppress(OSError, ValueError):  # a zero byte or a lone surrogate is in no path
        return "populated 1" in (directory / "cgroup.events").read_text()
    return False


def _names(pod: Pod) -> tuple[str, str]:
    return pod.namespace, pod.name
