import resource
from pathlib import Path

import pytest

from temper_core.observe.descriptors import (
    MOST_KEPT,
    DescriptorBudget,
    KeptFile,
    descriptor_limit,
    read_once,
)


def test_half_of_what_the_process_may_open_is_the_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert descriptor_limit() == 128
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert descriptor_limit() <= MOST_KEPT


def test_a_kept_file_is_read_from_its_start_each_time(tmp_path):
    budget, path = DescriptorBudget(), tmp_path / "counter"
    path.write_text("1")
    file = KeptFile(str(path), budget)

    first = file.read()
    path.write_text("22")

    assert (first, file.read(), budget.used, file.generation) == (b"1", b"22", 1, 0)
    file.close()
    assert budget.used == 0


def test_without_room_a_file_is_opened_each_time(tmp_path, names_in):
    budget, path = DescriptorBudget(0), tmp_path / "counter"
    path.write_text("1")
    file = KeptFile(str(path), budget)
    before = len(names_in("/proc/self/fd"))

    assert file.read() == file.read() == b"1"
    assert budget.used == 0
    assert len(names_in("/proc/self/fd")) == before
    file.close()


def test_some_room_can_be_left_for_others(tmp_path):
    budget = DescriptorBudget(4)
    path = tmp_path / "file"
    path.touch()

    spare = [budget.open(str(path), leave=0.5) for _ in range(4)]
    needed = [budget.open(str(path)) for _ in range(4)]

    assert [each >= 0 for each in spare] == [True, True, False, False]
    assert [each >= 0 for each in needed] == [True, True, False, False]
    for each in spare + needed:
        budget.close(each)
    assert budget.used == 0


def test_a_file_that_is_not_there_costs_no_room(tmp_path):
    budget = DescriptorBudget()
    file = KeptFile(str(tmp_path / "nothing"), budget)

    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            file.read()

    assert budget.used == 0


def test_a_cgroup_that_was_made_anew_is_read_anew_and_told(cgroup):
    _, folder = cgroup
    file = KeptFile(str(folder / "cgroup.procs"), DescriptorBudget())
    file.read()
    folder.rmdir()
    with pytest.raises(OSError, match="No such file"):
        file.read()
    folder.mkdir()

    content = file.read()

    assert (content, file.generation) == (b"", 1)
    file.close()


def test_reading_once_leaves_nothing_open(names_in):
    before = len(names_in("/proc/self/fd"))

    content = read_once("/proc/self/comm")

    assert content == Path("/proc/self/comm").read_bytes()
    assert len(names_in("/proc/self/fd")) == before
