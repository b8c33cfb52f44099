import os
import subprocess
import sys

import pytest

from temper_core.node.occupants import Occupant, running_threads
from temper_core.node.polled_values import PolledValues
from temper_core.node.processes import ProcessNames, main_process
from tests.core.node.trees import make_cgroup, make_process, write_files

linux_only = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")  # noqa: PTH110 - evaluated at import
ID = "0123456789abcdef" * 4


def stat_line(tid, comm, state, cpu):
    return f"{tid} ({comm}) {state} " + " ".join(["0"] * 35) + f" {cpu} 0 0\n"


def test_the_main_process_is_the_one_with_the_lowest_id(tmp_path):
    cgroup = make_cgroup(tmp_path / "cgroup", "a.service")
    make_process(tmp_path / "proc", 300, "worker", cgroup)
    make_process(tmp_path / "proc", 20, "main", cgroup)

    assert main_process(cgroup, tmp_path / "proc") == "main"


def test_a_cgroup_without_processes_of_its_own_is_looked_into(tmp_path):
    cgroup = make_cgroup(tmp_path / "cgroup", "a.service")
    make_process(tmp_path / "proc", 20, "main", make_cgroup(cgroup, "init"))

    assert main_process(cgroup, tmp_path / "proc") == "main"


def test_nobody_is_the_main_process_of_an_empty_or_missing_cgroup(tmp_path):
    empty = make_cgroup(tmp_path, "a", cgroup_procs="0\n")

    assert main_process(empty, tmp_path) == ""
    assert main_process(tmp_path / "absent", tmp_path) == ""


def test_a_process_that_has_gone_has_no_name(tmp_path):
    gone = make_cgroup(tmp_path, "a", cgroup_procs="77\n")

    assert main_process(gone, tmp_path / "proc") == ""


@linux_only
@pytest.mark.usefixtures("sleeper")
def test_the_names_of_this_machines_processes_include_a_child():
    assert "sleep" in ProcessNames().refresh()


def test_without_proc_there_are_no_names(tmp_path):
    assert ProcessNames(tmp_path / "absent").refresh() == frozenset()


def test_values_are_read_while_young_and_once_in_sixteen_polls_after():
    reads = []
    values = PolledValues(reads.append)

    for _ in range(3 + 160):
        values.refresh(["a"])

    assert len(reads) in (13, 14)


def test_a_key_that_comes_back_is_read_as_new():
    texts = iter("ab")
    values = PolledValues(lambda _: next(texts))

    before = values.refresh(["key"])
    values.refresh([])
    after = values.refresh(["key"])

    assert (before, after) == ({"key": "a"}, {"key": "b"})


def test_running_threads_are_told_with_cpu_and_owner(tmp_path):
    write_files(
        tmp_path,
        {
            "10/task/10/stat": stat_line(10, "idle", "S", 0),
            "10/task/11/stat": stat_line(11, "odd) R (name", "R", 3),
            "10/task/11/cgroup": f"0::/docker/{ID}\n",
            "12/task/12/stat": stat_line(12, "mysqld", "R", 1),
            "12/task/12/cgroup": "0::/system.slice/mysql.service\n",
            "13/task/13/stat": "13 (cut",
            "14/comm": "gone",
        },
    )

    assert running_threads(tmp_path) == [
        Occupant(1, 12, 12, "mysqld", "mysql.service"),
        Occupant(3, 11, 10, "odd) R (name", f"docker-{ID[:12]}"),
    ]


@linux_only
def test_a_busy_process_of_this_machine_is_seen_running():
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        seen = any(thread.tgid == spinner.pid for _ in range(100) for thread in running_threads())
    finally:
        spinner.kill()
        spinner.wait()

    assert seen
