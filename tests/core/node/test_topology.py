import platform
from pathlib import Path

import pytest

from temper_core.errors import MachineError
from temper_core.node.cpulist import parse_cpulist
from temper_core.node.topology import read_machine
from tests.core.node.sysfs_trees import (
    SysfsCpu,
    arm64_server,
    hybrid_laptop,
    smt_server,
    write_sysfs,
)

SYSTEM_CPUS = Path("/sys/devices/system/cpu")
linux_only = pytest.mark.skipif(not SYSTEM_CPUS.exists(), reason="needs a Linux sysfs")


def four_cpus(root, **lists):
    cpus = {cpu: SysfsCpu(core_id=cpu, siblings=(cpu,)) for cpu in range(4)}
    return write_sysfs(root, cpus, **lists)


def test_a_server_has_its_sockets_nodes_caches_and_siblings(tmp_path):
    machine = read_machine(smt_server(tmp_path))

    assert (machine.sockets, machine.numa_nodes, machine.llcs) == (2, 2, 4)
    assert (machine.cores, machine.threads_per_core) == (16, 2)
    assert machine.siblings_of(17) == (1, 17)
    assert {cpu.llc for cpu in machine.cpus if cpu.socket == 1} == {2, 3}
    assert not machine.is_hybrid


def test_the_older_name_of_the_sibling_list_is_read_too(tmp_path):
    cpus = {
        cpu: SysfsCpu(siblings=(0, 1), siblings_file="thread_siblings_list") for cpu in range(2)
    }

    assert read_machine(write_sysfs(tmp_path, cpus)).siblings == ((0, 1),)


@pytest.mark.parametrize("capacities", [True, False])
def test_a_hybrid_machine_knows_its_efficient_cpus(tmp_path, capacities):
    machine = read_machine(hybrid_laptop(tmp_path, capacities=capacities))

    assert machine.is_hybrid
    assert (machine.cores, machine.threads_per_core, machine.llcs) == (6, 2, 1)
    assert {cpu.id for cpu in machine.cpus if cpu.capacity < 1024} == {4, 5, 6, 7}


@pytest.mark.parametrize("clusters", [True, False])
def test_without_cache_information_each_node_is_one_cache(tmp_path, clusters):
    machine = read_machine(arm64_server(tmp_path, clusters=clusters), architecture="aarch64")

    assert machine.architecture == "aarch64"
    assert (machine.cores, machine.threads_per_core) == (8, 1)
    assert (machine.sockets, machine.numa_nodes, machine.llcs) == (2, 2, 2)


def test_private_caches_alone_are_nobodys_last_level(tmp_path):
    cpus = {
        cpu: SysfsCpu(core_id=cpu, siblings=(cpu,), caches={1: (cpu,), 2: (cpu,)})
        for cpu in range(4)
    }

    assert read_machine(write_sysfs(tmp_path, cpus)).llcs == 1


def test_a_cache_that_a_cluster_shares_counts_where_there_is_no_third_level(tmp_path):
    cpus = {
        cpu: SysfsCpu(core_id=cpu, siblings=(cpu,), caches={2: (cpu // 2 * 2, cpu // 2 * 2 + 1)})
        for cpu in range(4)
    }

    assert read_machine(write_sysfs(tmp_path, cpus)).llcs == 2


def test_a_third_level_counts_even_where_one_core_has_it_alone(tmp_path):
    cpus = {cpu: SysfsCpu(core_id=cpu, siblings=(cpu,), caches={3: (cpu,)}) for cpu in range(4)}

    assert read_machine(write_sysfs(tmp_path, cpus)).llcs == 4


def test_cpus_that_are_possible_or_present_but_not_online_are_offline(tmp_path):
    root = four_cpus(tmp_path, online="0,2", present="0-3", possible="0-7", isolated="2")

    machine = read_machine(root)

    assert [cpu.id for cpu in machine.cpus] == [0, 2]
    assert [cpu.core for cpu in machine.cpus] == [0, 1]
    assert machine.offline == (1, 3, 4, 5, 6, 7)
    assert machine.isolated == (2,)


def test_a_sibling_that_is_offline_does_not_count(tmp_path):
    cpus = {cpu: SysfsCpu(siblings=(0, 1)) for cpu in range(2)}

    machine = read_machine(write_sysfs(tmp_path, cpus, online="0"))

    assert machine.threads_per_core == 1
    assert machine.offline == (1,)


def test_without_an_online_list_the_directories_decide(tmp_path):
    root = four_cpus(tmp_path)
    (root / "devices/system/cpu/online").unlink()
    (root / "devices/system/cpu/cpu3/online").write_text("0\n")

    machine = read_machine(root)

    assert [cpu.id for cpu in machine.cpus] == [0, 1, 2]
    assert machine.offline == (3,)


def test_numbers_with_holes_are_counted_from_zero(tmp_path):
    cpus = {cpu: SysfsCpu(core_id=cpu * 8, package=cpu * 40, siblings=(cpu,)) for cpu in (0, 2, 5)}

    machine = read_machine(write_sysfs(tmp_path, cpus, nodes={0: "0", 8: "2", 252: "", 16: "5"}))

    assert [(cpu.id, cpu.core, cpu.socket, cpu.node) for cpu in machine.cpus] == [
        (0, 0, 0, 0),
        (2, 1, 1, 1),
        (5, 2, 2, 2),
    ]


def test_a_machine_of_bare_cpu_directories_has_one_core_each(tmp_path):
    cpus = {cpu: SysfsCpu(core_id=None, package=None) for cpu in range(4)}

    machine = read_machine(write_sysfs(tmp_path, cpus))

    assert (machine.cores, machine.sockets, machine.numa_nodes, machine.llcs) == (4, 1, 1, 1)


def test_firmware_that_does_not_know_the_package_means_one(tmp_path):
    cpus = {cpu: SysfsCpu(core_id=cpu, package=-1, siblings=(cpu,)) for cpu in range(2)}

    assert read_machine(write_sysfs(tmp_path, cpus)).sockets == 1


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("online", "zero to three"),
        ("online", "\x00\x01"),
        ("possible", "0-"),
        ("isolated", "1;2"),
        ("cpu2/topology/core_cpus_list", "0-1"),
        ("cpu2/topology/physical_package_id", "first"),
        ("cpu2/cpu_capacity", "0"),
        ("cpu2/cpu_capacity", "-3"),
        ("cpu2/cache/index0/level", "two"),
    ],
)
def test_a_corrupt_file_is_named_in_one_line(tmp_path, file, text):
    root = four_cpus(tmp_path)
    path = root / "devices/system/cpu" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

    with pytest.raises(MachineError) as caught:
        read_machine(root)

    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_named(tmp_path):
    root = four_cpus(tmp_path)
    path = root / "devices/system/cpu/cpu1/topology/core_cpus_list"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(MachineError, match="is not text"):
        read_machine(root)


def test_a_directory_where_a_file_should_be_is_named(tmp_path):
    root = four_cpus(tmp_path)
    (root / "devices/system/cpu/isolated").unlink()
    (root / "devices/system/cpu/isolated").mkdir()

    with pytest.raises(MachineError, match="isolated: Is a directory"):
        read_machine(root)


def test_an_empty_tree_says_what_is_missing(tmp_path):
    with pytest.raises(MachineError, match="names no CPU"):
        read_machine(tmp_path)


@linux_only
def test_this_machine_reads_as_its_kernel_says():
    machine = read_machine()

    online = parse_cpulist((SYSTEM_CPUS / "online").read_text())
    assert tuple(cpu.id for cpu in machine.cpus) == online
    assert machine.architecture == platform.machine()
    assert sorted(cpu for siblings in machine.siblings for cpu in siblings) == list(online)
