import os

import pytest

from temper_core.node.polled_values import PolledValues
from temper_core.node.processes import ProcessNames, main_process
from tests.core.node.trees import make_cgroup, make_process

linux_only = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")  # noqa: PTH110 - evaluated at import


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
