"""Sysfs trees of machines we do not have, written as the kernel lays them out."""

from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from temper_core.node.cpulist import format_cpulist
from tests.core.node.trees import write_files


@frozen
class SysfsCpu:
    """One CPU's directory; a key that is None is a file that the kernel does not have."""

    core_id: int | None = 0
    package: int | None = 0
    siblings: tuple[int, ...] | None = None
    siblings_file: str = "core_cpus_list"
    caches: Mapping[int, tuple[int, ...]] = field(factory=dict)
    capacity: int | None = None
    cluster: int | None = None


def write_sysfs(
    root: Path,
    cpus: Mapping[int, SysfsCpu],
    nodes: Mapping[int, str] | None = None,
    **lists: str,
) -> Path:
    """Write a tree of *cpus*, all online unless ``online="..."`` says otherwise."""
    base = "devices/system/cpu"
    said = {
        "online": format_cpulist(cpus),
        "possible": format_cpulist(cpus),
        "isolated": "",
        **lists,
    }
    said.setdefault("present", said["possible"])
    write_files(root, {f"{base}/{name}": f"{text}\n" for name, text in said.items()})
    for number, cpu in cpus.items():
        write_files(root / base / f"cpu{number}", _cpu_files(cpu))
    for node, cpulist in (nodes or {}).items():
        write_files(root, {f"devices/system/node/node{node}/cpulist": f"{cpulist}\n"})
    return root


def _cpu_files(cpu: SysfsCpu) -> dict[str, str]:
    files: dict[str, object] = {
        "topology/core_id": cpu.core_id,
        "topology/physical_package_id": cpu.package,
        "topology/cluster_id": cpu.cluster,
        "cpu_capacity": cpu.capacity,
        "uevent": "",
    }
    if cpu.siblings is not None:
        files[f"topology/{cpu.siblings_file}"] = format_cpulist(cpu.siblings)
    for index, (level, shared) in enumerate(sorted(cpu.caches.items())):
        files[f"cache/index{index}/level"] = level
        files[f"cache/index{index}/type"] = "Data" if level == 1 else "Unified"
        files[f"cache/index{index}/shared_cpu_list"] = format_cpulist(shared)
    return {path: f"{value}\n" for path, value in files.items() if value is not None}


def smt_server(root: Path) -> Path:
    """Two sockets of 8 cores with 2 threads, numbered as x86 servers do; an L3 for 4 cores."""
    return write_sysfs(
        root,
        {
            cpu: SysfsCpu(
                core_id=cpu % 8,
                package=cpu % 16 // 8,
                siblings=(cpu % 16, cpu % 16 + 16),
                caches={
                    1: (cpu % 16, cpu % 16 + 16),
                    2: (cpu % 16, cpu % 16 + 16),
                    3: _l3_of(cpu),
                },
            )
            for cpu in range(32)
        },
        nodes={0: "0-7,16-23", 1: "8-15,24-31"},
    )


def _l3_of(cpu: int) -> tuple[int, ...]:
    first = cpu % 16 // 4 * 4
    return (*range(first, first + 4), *range(first + 16, first + 20))


def hybrid_laptop(root: Path, *, capacities: bool) -> Path:
    """Two fast cores with two threads, four efficient ones with one; all under one L3."""
    everybody = tuple(range(8))
    fast = {
        cpu: SysfsCpu(
            core_id=cpu // 2 * 4,
            siblings=(cpu // 2 * 2, cpu // 2 * 2 + 1),
            caches={1: (cpu // 2 * 2, cpu // 2 * 2 + 1), 3: everybody},
            capacity=1024 if capacities else None,
        )
        for cpu in range(4)
    }
    efficient = {
        cpu: SysfsCpu(
            core_id=cpu + 4,
            siblings=(cpu,),
            caches={1: (cpu,), 2: (4, 5, 6, 7), 3: everybody},
            capacity=512 if capacities else None,
        )
        for cpu in range(4, 8)
    }
    write_files(root, {"devices/cpu_core/cpus": "0-3\n", "devices/cpu_atom/cpus": "4-7\n"})
    return write_sysfs(root, {**fast, **efficient}, nodes={0: "0-7"})


def arm64_server(root: Path, *, clusters: bool = False) -> Path:
    """Two packages of 4 cores without SMT, whose firmware describes no cache.

    With clusters, core_id counts from 0 in each of them and nobody lists siblings.
    """
    return write_sysfs(
        root,
        {
            cpu: SysfsCpu(
                core_id=cpu % 2 if clusters else cpu,
                package=cpu // 4,
                cluster=cpu // 2 if clusters else None,
                siblings=None if clusters else (cpu,),
                siblings_file="thread_siblings_list",
            )
            for cpu in range(8)
        },
        nodes={0: "0-3", 1: "4-7"},
    )
