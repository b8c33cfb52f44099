"""Reads the machine's shape from sysfs.

Kernel sources of truth: ``Documentation/ABI/stable/sysfs-devices-system-cpu`` (online, possible,
topology, cache) and ``Documentation/ABI/stable/sysfs-devices-node`` (cpulist).
"""

import errno
import platform
import re
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path

from attrs import frozen

from temper_core.errors import InputError, MachineError
from temper_core.node.cpulist import CPU_LIMIT, parse_cpulist
from temper_core.records.machine import Cpu, MachineShape

FULL_CAPACITY = 1024
# Kernels before 6.12 give x86 no cpu_capacity. Only the order matters here, not the ratio.
EFFICIENT_CAPACITY = 640
# A cache of this level is a last-level cache even where one core has it to itself.
CERTAINLY_SHARED_LEVEL = 3
# Reading a sysfs attribute that has no value fails with one of these.
_NO_VALUE = frozenset({errno.ENODEV, errno.ENXIO, errno.EINVAL, errno.EOPNOTSUPP, errno.EIO})
_CPU_DIRECTORY = re.compile(r"cpu([0-9]{1,4})")
_NODE_DIRECTORY = re.compile(r"node([0-9]{1,4})")


@frozen
class _Place:
    """The position of one CPU. CPUs with equal keys share a core, socket, node or cache."""

    id: int
    core: Hashable
    socket: int
    node: int
    llc: Hashable
    capacity: int


def read_machine(sys_root: Path = Path("/sys"), architecture: str | None = None) -> MachineShape:
    """Read the CPUs below *sys_root*. Raise MachineError naming a malformed file."""
    directory = sys_root / "devices/system/cpu"
    online = _online(directory)
    nodes = _nodes(sys_root / "devices/system/node")
    capacities = _hybrid_capacities(sys_root / "devices")
    places = [_place(directory, cpu, frozenset(online), nodes, capacities) for cpu in online]
    possible = {*_cpus_in(directory / "possible"), *_cpus_in(directory / "present")}
    return MachineShape(
        architecture or platform.machine(),
        _numbered(places),
        offline=tuple(sorted(possible.difference(online))),
        isolated=_cpus_in(directory / "isolated"),
    )


def _text(path: Path) -> str | None:
    """Return the file's text, or ``None`` if the kernel has no such file."""
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - thousands of small files; Path.open costs half as much again
            return file.read().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in _NO_VALUE:
            return None
        raise MachineError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise MachineError(f"{path}: is not text") from error


def _cpus_in(path: Path) -> tuple[int, ...]:
    text = _text(path)
    try:
        return parse_cpulist(text or "")
    except InputError as error:
        raise MachineError(f"{path}: {error}") from error


def _number(path: Path, missing: int) -> int:
    text = _text(path)
    if not text:
        return missing
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise MachineError(f"{path}: {text[:40]!r} is no whole number")
    return int(text)


def _online(directory: Path) -> tuple[int, ...]:
    listed = _cpus_in(directory / "online") or tuple(_without_list(directory))
    if not listed:
        raise MachineError(f"{directory / 'online'}: names no CPU; is sysfs mounted there?")
    return listed


def _without_list(directory: Path) -> Iterable[int]:
    """Yield the CPUs that have a directory and are not marked offline."""
    for cpu in _numbered_entries(directory, _CPU_DIRECTORY):
        # The boot CPU of many machines cannot go offline and has no such file.
        if cpu < CPU_LIMIT and _number(directory / f"cpu{cpu}/online", missing=1) != 0:
            yield cpu


def _numbered_entries(directory: Path, pattern: "re.Pattern[str]") -> list[int]:
    try:
        names = [entry.name for entry in directory.iterdir()]
    except OSError:
        return []
    return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))


def _nodes(directory: Path) -> Mapping[int, int]:
    """Return the NUMA node of every CPU, empty on kernels without NUMA."""
    return {
        cpu: node
        for node in _numbered_entries(directory, _NODE_DIRECTORY)
        for cpu in _cpus_in(directory / f"node{node}/cpulist")
    }


def _hybrid_capacities(devices: Path) -> Mapping[int, int]:
    """Return capacities of Intel's hybrid machines, derived from the PMU of each CPU."""
    fast, efficient = _cpus_in(devices / "cpu_core/cpus"), _cpus_in(devices / "cpu_atom/cpus")
    if not fast:
        return {}
    return dict.fromkeys(efficient, EFFICIENT_CAPACITY) | dict.fromkeys(fast, FULL_CAPACITY)


def _place(
    directory: Path,
    cpu: int,
    online: frozenset[int],
    nodes: Mapping[int, int],
    capacities: Mapping[int, int],
) -> _Place:
    own = directory / f"cpu{cpu}"
    # Firmware without this information reports -1.
    socket = max(0, _number(own / "topology/physical_package_id", missing=0))
    siblings = _siblings(own / "topology", cpu, online)
    node = nodes.get(cpu, 0)
    capacity = _number(own / "cpu_capacity", missing=FULL_CAPACITY)
    if capacity < 1:
        raise MachineError(f"{own / 'cpu_capacity'}: {capacity} is no capacity; at least 1")
    if capacity == FULL_CAPACITY:
        capacity = capacities.get(cpu, capacity)
    core = siblings or _core_without_siblings(own / "topology", cpu, socket)
    shared = _last_level_cache(own / "cache", siblings or frozenset([cpu]), online)
    return _Place(cpu, core, socket, node, shared or (socket, node), capacity)


def _siblings(topology: Path, cpu: int, online: frozenset[int]) -> frozenset[int]:
    """Return the online CPUs of *cpu*'s core, empty if the kernel does not list them."""
    # core_cpus_list is the newer name (5.3). The kernel keeps the older one for compatibility.
    for name in ("core_cpus_list", "thread_siblings_list"):
        listed = _cpus_in(topology / name)
        if listed and cpu not in listed:
            raise MachineError(f"{topology / name}: does not list CPU {cpu} itself")
        if listed:
            return online.intersection(listed)
    return frozenset()


def _core_without_siblings(topology: Path, cpu: int, socket: int) -> Hashable:
    core = _number(topology / "core_id", missing=-1)
    # core_id starts at 0 in every die and cluster.
    inside = (
        socket,
        _number(topology / "die_id", missing=-1),
        _number(topology / "cluster_id", missing=-1),
    )
    return (*inside, core) if core >= 0 else ("alone", cpu)


def _last_level_cache(
    cache: Path, siblings: frozenset[int], online: frozenset[int]
) -> frozenset[int]:
    """Return the CPUs that share the last-level cache, empty if the kernel lists none."""
    best = (0, cache)
    for index in range(8):
        level = _number(cache / f"index{index}/level", missing=0)
        if level == 0:
            break
        if level > best[0] and _text(cache / f"index{index}/type") != "Instruction":
            best = (level, cache / f"index{index}")
    level, directory = best
    shared = online.intersection(_cpus_in(directory / "shared_cpu_list")) if level else frozenset()
    # Firmware often lists only the private caches, which are no last level.
    if level < CERTAINLY_SHARED_LEVEL and shared <= siblings:
        return frozenset()
    return shared


def _numbered(places: list[_Place]) -> tuple[Cpu, ...]:
    """Replace the kernel's keys, which may have gaps, by numbers from 0."""
    cores = _numbers(place.core for place in places)
    sockets = _numbers(sorted({place.socket for place in places}))
    nodes = _numbers(sorted({place.node for place in places}))
    llcs = _numbers(place.llc for place in places)
    return tuple(
        Cpu(
            place.id,
            cores[place.core],
            sockets[place.socket],
            nodes[place.node],
            llcs[place.llc],
            place.capacity,
        )
        for place in places
    )


def _numbers(keys: Iterable[Hashable]) -> dict[Hashable, int]:
    return {key: number for number, key in enumerate(dict.fromkeys(keys))}
