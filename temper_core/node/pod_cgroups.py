"""The cgroups of one pod of this node, and the container of each."""

from collections.abc import Callable, Iterable
from pathlib import Path

from attrs import frozen

from temper_core.errors import InputError, MachineError
from temper_core.node import builtin_plugin
from temper_core.node.host_cgroups import HostCgroups
from temper_core.node.pod_index import PodIndex
from temper_core.node.pod_watch import open_pod_source
from temper_core.node.topology import read_machine
from temper_core.plugin_host import PluginHost, load_host
from temper_core.records.contributions import PodSourceContext
from temper_core.records.machine import MachineShape
from temper_core.records.pods import Pod
from temper_core.settings.models import Settings


@frozen(eq=False)
class PodCgroups:
    """The topmost directories that list a pod's processes.

    ``container`` returns the name of a directory's container.
    """

    pod: str
    directories: tuple[Path, ...]
    container: Callable[[Path], str]


def find_pod_cgroups(
    name: str,
    settings: Settings,
    *,
    proc_root: str = "/proc",
    cgroup_root: str = "/sys/fs/cgroup",
) -> PodCgroups:
    """Find the pod with the key *name*, or the only pod of that name, in the settings' pod source.

    Raises InputError if there is none, MachineError if its cgroups are not known.
    """
    host = load_host(settings, extra={builtin_plugin.NAME: builtin_plugin})
    roots = {"proc_root": proc_root, "cgroup_root": cgroup_root}
    pods = pods_of_node(host, settings, read_machine(), **roots)
    return _cgroups_of(chosen(name, pods), HostCgroups(proc_root, cgroup_root))


def pods_of_node(
    host: PluginHost, settings: Settings, machine: MachineShape, **roots: str
) -> tuple[Pod, ...]:
    """Return the pods of this node now, from the pod source of *settings*, a plugin of *host*.

    Raises MachineError if they cannot be read.
    """
    node = settings.node_name
    context = PodSourceContext(settings.pods, settings.workloads, machine, node=node, **roots)
    watch = open_pod_source(host, settings.pods.source, context)
    try:
        watch.look()
        if watch.defect:
            raise MachineError(watch.defect)
        return watch.pods
    finally:
        watch.close()


def chosen(name: str, pods: Iterable[Pod]) -> Pod:
    """Return the pod with that key or unique name. Raise InputError with similar names."""
    by_key = {pod.key: pod for pod in pods}
    if name in by_key:
        return by_key[name]
    matches = [pod for pod in by_key.values() if pod.name == name]
    if len(matches) == 1:
        return matches[0]
    from difflib import get_close_matches  # noqa: PLC0415 - only a misspelled name needs it

    close = [pod.key for pod in matches] or get_close_matches(name, by_key)
    suggestion = f"; did you mean {', '.join(close)}?" if close else ""
    raise InputError(f"no pod is called {name!r}{suggestion}")


def _cgroups_of(pod: Pod, host: HostCgroups) -> PodCgroups:
    try:
        host.refresh()
        index = PodIndex([pod])
        paths = [path for path in host.paths if index.find(path) is pod]
        containers = {str(host.directory(path)): index.container(path) for path in paths}
        tops = [path for path in paths if path.rpartition("/")[0] not in set(paths)]
        directories = tuple(host.directory(path) for path in tops)
    finally:
        host.close()
    if not directories:
        raise MachineError(f"pod {pod.key}: no cgroup of it is known; name processes with --pid")
    names = {
        path: container.name for path, container in containers.items() if container is not None
    }
    return PodCgroups(pod.key, directories, lambda directory: _nearest(names, directory))


def _nearest(names: dict[str, str], directory: Path) -> str:
    """Return the name of *directory*, or of the nearest one above it, else an empty string."""
    above = (names.get(str(candidate)) for candidate in (directory, *directory.parents))
    return next((name for name in above if name is not None), "")
