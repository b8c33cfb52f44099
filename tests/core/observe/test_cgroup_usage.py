import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.observe.cgroup_usage import (
    CgroupReader,
    CgroupRoots,
    CgroupUsage,
    parse_flat_keyed,
)
from temper_core.observe.descriptors import DescriptorBudget

PSI = "some avg10=1.00 avg60=0.00 avg300=0.00 total=5\n"
POD = "kubepods/pod1/"


@pytest.fixture
def budget():
    return DescriptorBudget()


@pytest.fixture
def unified(tmp_path, budget):
    """A cgroup v2 tree in a folder, with a reader of it."""
    reader = CgroupReader(CgroupRoots(str(tmp_path)), budget)
    yield tmp_path, reader
    reader.close()


def write(root, path, **files):
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)


def cpu_stat(usage, periods=0, throttled=0):
    return f"usage_usec {usage}\nuser_usec 1\nnr_periods {periods}\nnr_throttled {throttled}\n"


def test_the_first_look_has_memory_and_pressure_but_no_rate(unified):
    root, reader = unified
    write(root, POD, cpu__stat=cpu_stat(500), memory__current="4096\n", cpu__pressure=PSI)

    usage = reader.read([POD])[POD]

    assert (usage.cpu_us, usage.memory_bytes) == (None, 4096)
    assert usage.pressure["cpu"].some.avg10 == 0.01


def test_later_looks_have_what_was_used_in_between(unified):
    root, reader = unified
    write(root, POD, cpu__stat=cpu_stat(500, 10, 1))
    reader.read([POD])
    write(root, POD, cpu__stat=cpu_stat(1_700, 30, 6))

    assert reader.read([POD])[POD] == CgroupUsage(1_200, 20, 5)


def test_a_cgroup_that_begins_again_is_charged_from_zero(unified):
    root, reader = unified
    write(root, POD, cpu__stat=cpu_stat(5_000, 10, 9))
    reader.read([POD])
    write(root, POD, cpu__stat=cpu_stat(300, 2, 1))

    assert reader.read([POD])[POD] == CgroupUsage(300, 2, 1)


def test_a_cgroup_that_appears_later_is_charged_from_zero(unified):
    root, reader = unified
    missing = reader.read([POD])[POD]
    write(root, POD, cpu__stat=cpu_stat(300))

    assert missing == CgroupUsage()
    assert reader.read([POD])[POD].cpu_us == 300


def test_cgroups_that_are_no_longer_asked_for_are_let_go(unified, budget):
    root, reader = unified
    write(root, POD, cpu__stat=cpu_stat(500), memory__current="1", cpu__pressure=PSI)
    reader.read([POD])
    held = budget.used

    reader.read([])

    assert (held, budget.used) == (3, 0)


def test_a_hybrid_host_is_read_at_its_v1_controllers(tmp_path, budget):
    roots = CgroupRoots(*(str(tmp_path / name) for name in ("v2", "cpu", "cpuacct", "memory")))
    write(tmp_path / "v2", "", cpu__stat="usage_usec 1\n")
    write(tmp_path / "cpu", POD, cpu__stat="nr_periods 4\nnr_throttled 0\nthrottled_time 0\n")
    write(tmp_path / "cpuacct", POD, cpuacct__usage="7000000\n")
    write(tmp_path / "memory", POD, memory__usage_in_bytes="8192\n")
    reader = CgroupReader(roots, budget)
    reader.read([POD])
    write(tmp_path / "cpu", POD, cpu__stat="nr_periods 8\nnr_throttled 3\nthrottled_time 9\n")
    write(tmp_path / "cpuacct", POD, cpuacct__usage="9000000\n")

    usage = reader.read([POD])[POD]

    assert usage == CgroupUsage(2_000, 4, 3, 8192)
    reader.close()
    assert budget.used == 0


def test_the_unified_path_comes_first_and_the_quota_from_v1(tmp_path, budget):
    roots = CgroupRoots(str(tmp_path / "v2"), cpu=str(tmp_path / "cpu"))
    write(tmp_path / "v2", POD, cpu__stat="usage_usec 10\n")
    write(tmp_path / "cpu", POD, cpu__stat="nr_periods 4\nnr_throttled 2\n")
    reader = CgroupReader(roots, budget)
    reader.read([POD])
    write(tmp_path / "v2", POD, cpu__stat="usage_usec 30\n")
    write(tmp_path / "cpu", POD, cpu__stat="nr_periods 5\nnr_throttled 3\n")

    assert reader.read([POD])[POD] == CgroupUsage(20, 1, 1)


def test_a_real_cgroups_time_is_what_its_process_used(spawn, cgroup, budget, let_run):
    name, folder = cgroup
    reader = CgroupReader(CgroupRoots(str(folder.parent)), budget)
    child = spawn("print('up', flush=True)\nwhile True: pass")
    (folder / "cgroup.procs").write_text(str(child.pid))
    reader.read([f"{name}/"])
    began = time.monotonic()
    let_run(child.pid)

    usage = reader.read([f"{name}/"])[f"{name}/"]

    assert 0 < usage.cpu_us <= (time.monotonic() - began) * 1e6 + 20_000
    child.kill()
    child.wait()
    reader.close()


def test_a_cgroup_that_is_removed_reads_as_nothing(cgroup, budget):
    name, folder = cgroup
    reader = CgroupReader(CgroupRoots(str(folder.parent)), budget)
    reader.read([f"{name}/"])
    folder.rmdir()

    usage = reader.read([f"{name}/"])[f"{name}/"]

    assert usage == CgroupUsage()
    assert budget.used == 0
    folder.mkdir()


@settings(max_examples=60)
@given(st.binary(max_size=80))
def test_lines_that_are_no_pairs_are_passed_over(content):
    found = parse_flat_keyed(b"usage_usec 5\n" + content + b"\nnr_periods 6\n")

    assert found["nr_periods"] == 6
    assert all(value >= 0 for value in found.values())
