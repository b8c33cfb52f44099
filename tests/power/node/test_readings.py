"""Readings of packages by RAPL: what counts, what does not, and what is not here."""

import os
from pathlib import Path
from tempfile import gettempdir

import pytest

from temper_plugin_power.node.readings import PackageReader
from temper_plugin_power.node.zones import find_packages
from tests.power.node.rapl_tree import RaplTree, put


def reading(tree):
    reader = PackageReader(find_packages(tree.powercap).packages)
    reader.read(0.0)
    return reader


def test_packages_and_their_memory_are_read_in_watts(tmp_path):
    tree = RaplTree(tmp_path)
    reader = reading(tree)
    tree.use(500)
    tree.use(250, "intel-rapl:1")
    tree.use(50, "intel-rapl:0:0")

    power = reader.read(5.0)

    assert [package.watts for package in power.packages] == [100.0, 50.0]
    assert (power.package_watts, power.dram_watts) == (150.0, 10.0)
    assert [(each.limit_watts, each.max_watts) for each in power.packages] == [(150.0, 205.0)] * 2


def test_cores_the_platform_and_the_second_way_to_a_package_are_not_added(tmp_path):
    tree = RaplTree(tmp_path, packages=1)
    tree.zone("intel-rapl:0:1", "core")
    tree.zone("intel-rapl:1", "psys")
    tree.zone("intel-rapl-mmio:0", "package-0")
    for name in ("intel-rapl", "dtpm"):
        (tree.powercap / name).mkdir()

    assert [package.name for package in find_packages(tree.powercap).packages] == ["package-0"]


def test_the_second_way_counts_where_there_is_no_first(tmp_path):
    tree = RaplTree(tmp_path, packages=0)
    tree.zone("intel-rapl-mmio:0", "package-0")

    assert [package.name for package in find_packages(tree.powercap).packages] == ["package-0"]


def test_the_packages_are_in_the_order_of_their_numbers(tmp_path):
    tree = RaplTree(tmp_path, packages=0)
    for number in (10, 2, 0):
        tree.zone(f"intel-rapl:{number}", f"package-{number}-die-0")

    names = [package.name for package in find_packages(tree.powercap).packages]

    assert names == ["package-0-die-0", "package-2-die-0", "package-10-die-0"]


def test_a_package_without_memory_has_none(tmp_path):
    tree = RaplTree(tmp_path, packages=0)
    tree.zone("intel-rapl:0", "package-0")
    reader = reading(tree)

    power = reader.read(1.0)

    assert (power.package_watts, power.dram_watts) == (0.0, None)
    assert power.packages[0].max_watts is None


def test_a_machine_without_powercap_says_so(tmp_path):
    assert find_packages(tmp_path / "class").why_none == (
        f"{tmp_path}/class does not exist: a virtual machine, or a kernel without intel_rapl"
    )


def test_a_powercap_without_packages_says_so(tmp_path):
    tree = RaplTree(tmp_path, packages=0)
    tree.zone("intel-rapl:0", "psys")

    assert find_packages(tree.powercap).why_none.endswith(
        "has no package zone of RAPL: intel_rapl_msr is not loaded"
    )


def test_a_mount_of_the_devices_has_the_same_packages(tmp_path):
    tree = RaplTree(tmp_path)

    packages = find_packages(tree.devices).packages

    assert [(each.name, each.dram.name) for each in packages] == [
        ("package-0", "dram"),
        ("package-1", "dram"),
    ]


def test_zones_that_a_container_runtime_masks_are_told_from_no_zones(tmp_path):
    tree = RaplTree(tmp_path)
    tree.devices.rename(tmp_path / "masked")
    tree.devices.mkdir()

    assert "container runtimes mask" in find_packages(tree.powercap).why_none


def test_this_machine_is_read_or_says_why_not():
    powercap = find_packages(Path("/sys/class/powercap"))

    power = PackageReader(powercap.packages).read(0.0)

    assert bool(powercap.packages) != bool(powercap.why_none)
    assert len(power.packages) == len(powercap.packages)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes the rights of another user")
def test_a_counter_that_only_root_may_read_is_named_with_its_mode(tmp_path):
    tree = RaplTree(tmp_path, packages=1)
    counter = tree.at("intel-rapl:0", "energy_uj")
    counter.chmod(0o400)
    folders = (each for each in tmp_path.parents if each.is_relative_to(gettempdir()))
    for folder in (tmp_path, *folders):
        folder.chmod(folder.stat().st_mode | 0o055)
    reader = PackageReader(find_packages(tree.powercap).packages)
    os.seteuid(65534)
    try:
        power = reader.read(0.0)
    finally:
        os.seteuid(0)

    assert power.problems == (
        f"{tree.powercap}/intel-rapl:0/energy_uj: Permission denied (mode 0400, user 65534)",
    )
    assert power.package_watts is None


@pytest.mark.parametrize("text", ["", "many", "-5", "1e9"])
def test_a_counter_that_is_no_number_is_named(tmp_path, text):
    tree = RaplTree(tmp_path, packages=2)
    put(tree.at("intel-rapl:0", "energy_uj"), text)
    reader = reading(tree)

    power = reader.read(5.0)

    assert power.problems == (f"{tree.powercap}/intel-rapl:0/energy_uj: is not a number",)
    assert (power.packages[1].watts, power.package_watts) == (0.0, None)


def test_after_a_failed_reading_the_counter_begins_anew(tmp_path):
    tree = RaplTree(tmp_path, packages=1)
    reader = reading(tree)
    counter = tree.at("intel-rapl:0", "energy_uj")
    counter.rename(tmp_path / "away")
    is_lost = reader.read(5.0).package_watts is None
    (tmp_path / "away").rename(counter)

    assert is_lost
    assert reader.read(10.0).package_watts is None
    tree.use(500)
    assert reader.read(15.0).package_watts == 100.0
