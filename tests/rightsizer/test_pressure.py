"""PSI of containers: from the files of a cgroup to the reasons."""

import os
import subprocess
import sys
import time

import pytest

from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.pressure import (
    NOT_MEASURED,
    pressure,
    pressure_notes,
    pressure_reasons,
)
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.demand.interval import Counts
from temper_plugin_rightsizer.node.cgroup_counters import ROOT, STALLS, CgroupCounters, CgroupFiles
from tests.patience import PATIENCE_S
from tests.rightsizer.shapes import over_hours, window

PATH = "kubepods/podu1/app"


def write(root, some, full, resources=STALLS):
    folder = root / PATH
    folder.mkdir(parents=True, exist_ok=True)
    for resource in resources:
        (folder / f"{resource}.pressure").write_text(
            f"some avg10=1.00 avg60=2.00 avg300=3.00 total={some}\n"
            f"full avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n"
        )


def test_the_stalls_between_two_looks_count(tmp_path):
    files = CgroupFiles(tmp_path)
    write(tmp_path, some=5_000_000, full=1_000_000)
    before = files.read(PATH)
    write(tmp_path, some=11_000_000, full=1_600_000)

    counts = files.read(PATH).since(before, 60.0)

    assert (counts.pressure_s, counts.cpu_some_s, counts.memory_full_s) == (60.0, 6.0, 0.6)
    assert pressure(counts) == {
        "cpu": 0.1,
        "cpu_unthrottled": 0.1,
        "memory": 0.1,
        "memory_full": 0.01,
        "io": 0.1,
        "io_full": 0.01,
    }


def test_a_hybrid_host_has_pressure_in_its_v2_hierarchy(tmp_path):
    write(tmp_path / "unified", some=7, full=0)

    assert CgroupFiles(tmp_path).read(PATH).stalled_us["cpu", "some"] == 7


def test_the_first_look_and_a_new_cgroup_measure_nothing():
    old, new = (CgroupCounters(stalled_us={("cpu", "some"): total}) for total in (900, 100))

    assert old.since(None, 60.0).pressure_s == 0.0
    assert new.since(old, 60.0).pressure_s == 0.0
    assert old.since(CgroupCounters(), 60.0).pressure_s == 0.0


def test_a_stall_is_no_longer_than_the_time():
    """The kernel's clock and the agent's are read at different moments."""
    before, now = (CgroupCounters(stalled_us={("cpu", "some"): at}) for at in (0, 61_000_000))

    assert now.since(before, 60.0).cpu_some_s == 60.0


@pytest.mark.parametrize("resources", [(), ("cpu",), ("cpu", "memory")])
def test_a_kernel_without_psi_has_none(tmp_path, resources):
    write(tmp_path, some=1, full=1, resources=resources)

    assert CgroupFiles(tmp_path).read(PATH).stalled_us == {}


@pytest.mark.parametrize(
    "content", ["", "some", "some total=x", "some avg10=0 total=-1", "\0" * 99]
)
def test_a_file_in_another_format_has_none(tmp_path, content):
    write(tmp_path, some=1, full=1)
    (tmp_path / PATH / "io.pressure").write_text(content)

    assert CgroupFiles(tmp_path).read(PATH).stalled_us == {}


def test_waits_worth_a_word_are_among_the_reasons():
    counts = Counts(pressure_s=100.0, cpu_some_s=30.0, throttled_s=20.0, memory_some_s=5.0)

    of_cpu, of_memory = pressure_reasons(counts)
    assert of_cpu == (
        "a thread waited for a CPU in 30.0% of the time (PSI cpu some), in 10.0% at least not by "
        "throttling"
    )
    assert of_memory == (
        "a thread waited for memory in 5.0% of the time, and all threads at once in 0.0% "
        "(PSI memory some, full)"
    )
    assert list(pressure_reasons(Counts(pressure_s=100.0, cpu_some_s=0.9))) == []
    assert list(pressure_reasons(Counts(cpu_some_s=5.0))) == []


def test_the_reasons_of_an_advice_have_the_waits():
    demand = over_hours(lambda _: window(("work", 0.5)), 6)
    demand.counts.merge(Counts(pressure_s=100.0, io_some_s=8.0, io_full_s=4.0))

    advice = advise(demand, Resources(500))

    assert any("waited for I/O in 8.0% of the time" in reason for reason in advice.reasons)


def test_a_report_without_any_pressure_says_so():
    known, unknown = {"used": {"pressure": {"cpu": 0.1}}}, {"used": {"pressure": None}}

    assert pressure_notes([unknown, unknown]) == (NOT_MEASURED,)
    assert pressure_notes([known, unknown]) == pressure_notes([]) == ()


def test_four_busy_threads_on_one_cpu_wait_by_the_kernels_own_count():
    hybrid = ROOT / "unified"
    folder = (hybrid if hybrid.is_dir() else ROOT) / f"temper-test-{os.getpid()}"
    if os.geteuid() != 0 or not (folder.parent / "cpu.pressure").exists():
        pytest.skip("needs root and a kernel with PSI for cgroups")
    folder.mkdir()
    cpu = min(os.sched_getaffinity(0))
    busy = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    programs = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(4)]
    files, waited = CgroupFiles(), 0.0
    try:
        for program in programs:
            (folder / "cgroup.procs").write_text(str(program.pid))
        before, began = files.read(folder.name), time.monotonic()
        while waited < 0.5 and time.monotonic() - began < PATIENCE_S:
            time.sleep(1.0)
            counts = files.read(folder.name).since(before, time.monotonic() - began)
            waited = counts.cpu_some_s / counts.pressure_s
    finally:
        for program in programs:
            program.kill()
            program.wait()
        folder.rmdir()

    assert waited >= 0.5
    assert pressure(counts)["memory_full"] < 0.1
