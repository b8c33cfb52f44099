import os
import time
from pathlib import Path

import pytest

from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.cgroup_usage import CgroupReader, CgroupUsage
from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.throttling import Throttled

PSI = "some avg10={average}.00 avg60=0.00 avg300=0.00 total={total}\n"
POD = "kubepods/pod1/"
FILL = "x = bytearray(2**23); print(len(x), flush=True); sys.stdin.readline()"


@pytest.fixture
def budget():
    return DescriptorBudget()


@pytest.fixture
def look():
    """Read one cgroup again and again below the hierarchies given, the last time all is let go."""
    readers = []

    def reader(path, roots, budget):
        readers.append(CgroupReader(roots, budget, lambda: 4))
        readers[-1].follow([path])
        return lambda *window: readers[-1].read(*window)[path]

    yield reader
    for each in readers:
        each.close()


def write(root, path=POD, **files):
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)


def psi(total, average=1):
    return PSI.format(total=total, average=average)


def cpu_stat(usage, periods=0, throttled=0, throttled_us=0):
    return (
        f"usage_usec {usage}\nuser_usec 1\nnr_periods {periods}\nnr_throttled {throttled}\n"
        f"throttled_usec {throttled_us}\n"
    )


def test_the_first_look_has_memory_and_pressure_but_no_rate(tmp_path, budget, look):
    write(tmp_path, cpu__stat=cpu_stat(500), memory__current="4096\n", cpu__pressure=psi(5))

    usage = look(POD, CgroupRoots(str(tmp_path)), budget)()

    assert (usage.cpu_us, usage.memory_bytes, usage.stalled_us) == (None, 4096, None)
    assert usage.pressure["cpu"].some.avg10 == 0.01


def test_later_looks_have_what_was_used_in_between(tmp_path, budget, look):
    write(tmp_path, cpu__stat=cpu_stat(500, 10, 1, 7), cpu__pressure=psi(5))
    read = look(POD, CgroupRoots(str(tmp_path)), budget)
    read()
    write(tmp_path, cpu__stat=cpu_stat(1_700, 30, 6, 1007), cpu__pressure=psi(305))

    usage = read()

    assert (usage.cpu_us, usage.stalled_us) == (1_200, 300)
    assert usage.throttled == Throttled(20, 5, 1000, 1000.0)


def test_a_cgroup_that_begins_again_is_charged_from_zero(tmp_path, budget, look):
    write(tmp_path, cpu__stat=cpu_stat(5_000, 10, 9, 90), cpu__pressure=psi(500))
    read = look(POD, CgroupRoots(str(tmp_path)), budget)
    read()
    write(tmp_path, cpu__stat=cpu_stat(300, 2, 1, 10), cpu__pressure=psi(50))

    usage = read()

    assert (usage.cpu_us, usage.stalled_us) == (300, 50)
    assert usage.throttled == Throttled(2, 1, 10, 10.0)


def test_a_cgroup_that_appears_later_is_charged_from_zero(tmp_path, budget, look):
    read = look(POD, CgroupRoots(str(tmp_path)), budget)
    missing = read()
    write(tmp_path, cpu__stat=cpu_stat(300))

    assert missing == CgroupUsage()
    assert read().cpu_us == 300


def test_cgroups_that_are_no_longer_followed_are_let_go(tmp_path, budget):
    write(tmp_path, cpu__stat=cpu_stat(500), memory__current="1", cpu__pressure=psi(1))
    reader = CgroupReader(CgroupRoots(str(tmp_path)), budget)
    reader.follow([POD])
    reader.read()
    held = budget.used

    reader.follow([])

    assert (held, budget.used, reader.read()) == (3, 0, {})


def test_a_hybrid_host_is_read_at_its_v1_controllers(tmp_path, budget, look):
    roots = CgroupRoots(*(str(tmp_path / name) for name in ("v2", "cpu", "cpuacct", "memory")))
    write(tmp_path / "v2", "", cpu__stat="usage_usec 1\n")
    quota = {"cpu__cfs_quota_us": "50000\n", "cpu__cfs_period_us": "100000\n"}
    stat = "nr_periods 4\nnr_throttled 0\nthrottled_time 0\n"
    write(tmp_path / "cpu", cpu__stat=stat, **quota)
    write(tmp_path / "cpuacct", cpuacct__usage="7000000\n")
    write(tmp_path / "memory", memory__usage_in_bytes="8192\n")
    read = look(POD, roots, budget)
    read()
    stat = "nr_periods 8\nnr_throttled 3\nthrottled_time 9000\n"
    write(tmp_path / "cpu", cpu__stat=stat)
    write(tmp_path / "cpuacct", cpuacct__usage="9000000\n")

    usage = read()

    assert (usage.cpu_us, usage.memory_bytes) == (2_000, 8192)
    assert usage.throttled == Throttled(4, 3, 9, 9.0)
    assert usage.limits.quota_cores == 0.5


def test_where_the_node_has_not_waited_calm_files_say_what_they_said(tmp_path, budget, look):
    write(tmp_path, cpu__pressure=psi(5, 0), io__pressure=psi(7, 0), memory__pressure=psi(9, 1))
    read = look(POD, CgroupRoots(str(tmp_path)), budget)
    read()
    write(tmp_path, cpu__pressure=psi(6, 0), io__pressure=psi(8, 0), memory__pressure=psi(10, 1))

    unmoved = read(5.0, ("io", "memory")).pressure
    read_again = read().pressure

    assert [unmoved[name].some.total_us for name in ("cpu", "io", "memory")] == [6, 7, 10]
    assert read_again["io"].some.total_us == 8


def test_throttling_of_a_container_counts_for_its_pod(tmp_path, budget, look):
    container = f"{POD}c1/"
    write(tmp_path, cpu__stat=cpu_stat(100, 10, 0, 0), cpu__max="max 100000\n")
    write(tmp_path, container, cpu__stat=cpu_stat(90, 10, 2, 20), cpu__max="50000 100000\n")
    read = look(POD, CgroupRoots(str(tmp_path)), budget)
    read()
    write(tmp_path, cpu__stat=cpu_stat(200, 20, 0, 0))
    write(tmp_path, container, cpu__stat=cpu_stat(190, 20, 7, 600_020))

    throttled = read().throttled

    assert (throttled.periods, throttled.throttled_periods) == (10, 5)
    # 0.6 s in 5 periods of 0.1 s beside a quota of half a CPU: it wanted 1.7 CPUs.
    assert throttled.throttled_us == 600_000
    assert throttled.explained_us == pytest.approx(600_000 / 1.7)


def test_a_real_cgroups_time_is_what_its_process_used(spawn, cgroup, budget, let_run, look):
    name, folder = cgroup
    read = look(f"{name}/", CgroupRoots(str(folder.parent)), budget)
    child = spawn("print('up', flush=True)\nwhile True: pass")
    (folder / "cgroup.procs").write_text(str(child.pid))
    read()
    began = time.monotonic()
    let_run(child.pid)

    usage = read()

    assert 0 < usage.cpu_us <= (time.monotonic() - began) * 1e6 + 20_000
    child.kill()
    child.wait()


def test_a_real_cgroups_numbers_are_those_of_its_files(spawn, cgroup, budget, let_run, look):
    name, folder = cgroup
    child = spawn("print('up', flush=True)\nwhile True: pass")
    (folder / "cgroup.procs").write_text(str(child.pid))
    read = look(f"{name}/", CgroupRoots(str(folder.parent)), budget)

    def counted():
        pairs = (folder / "cpu.stat").read_text().split()
        stalled = (folder / "cpu.pressure").read_text().split("total=")[1].split()[0]
        return int(pairs[1]), int(stalled)

    outer_before = counted()
    read()
    inner_before = counted()
    let_run(child.pid, 50)
    inner_after = counted()
    usage = read()
    outer_after = counted()

    # What lies between two looks is at least what lies inside them, at most what lies around.
    for seen, index in ((usage.cpu_us, 0), (usage.stalled_us, 1)):
        least = inner_after[index] - inner_before[index]
        assert least <= seen <= outer_after[index] - outer_before[index]
    child.kill()
    child.wait()


def test_a_real_cgroups_memory_is_that_of_its_file(spawn, budget, look):
    root = memory_root()
    folder = root / f"temper-test-{os.getpid()}"
    folder.mkdir()
    child = spawn("import sys; print('up', flush=True); sys.stdin.readline()\n" + FILL)
    (folder / "cgroup.procs").write_text(str(child.pid))
    child.stdin.write("go\n")
    child.stdin.flush()
    child.stdout.readline()

    usage = look(f"{folder.name}/", CgroupRoots("", memory=str(root)), budget)()

    kernel = int((folder / "memory.usage_in_bytes").read_text())
    child.kill()
    child.wait()
    folder.rmdir()
    assert usage.memory_bytes == pytest.approx(kernel, rel=0.2)


def memory_root():
    root = Path("/sys/fs/cgroup/memory")
    if not os.access(root / "cgroup.procs", os.W_OK):
        pytest.skip("no writable memory controller of cgroup v1 here")
    return root


def test_a_cgroup_that_is_removed_reads_as_nothing(cgroup, budget, look):
    name, folder = cgroup
    read = look(f"{name}/", CgroupRoots(str(folder.parent)), budget)
    read()
    folder.rmdir()

    usage = read()

    assert usage == CgroupUsage()
    assert budget.used == 0
    folder.mkdir()
