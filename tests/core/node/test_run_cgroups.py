import os

import pytest

from temper_core.node.pod_size import CpuSize
from temper_core.node.run_cgroups import LIMIT_NOTE, REQUEST_NOTE, is_populated, note, noted_size


@pytest.fixture
def folder(tmp_path):
    """A directory that takes attributes, as a cgroup does."""
    if not note(tmp_path, REQUEST_NOTE, 1):
        pytest.skip("the file system of the temporary folder has no extended attributes")
    os.removexattr(tmp_path, REQUEST_NOTE)
    return tmp_path


def test_what_is_noted_counts_before_what_the_files_say(folder):
    note(folder, REQUEST_NOTE, 250)
    note(folder, LIMIT_NOTE, 500)

    assert noted_size(folder, otherwise=CpuSize(232, 700)) == CpuSize(250, 500)


def test_each_size_that_is_not_noted_is_what_the_files_say(folder):
    note(folder, REQUEST_NOTE, 0)

    assert noted_size(folder, otherwise=CpuSize(232, 700)) == CpuSize(0, 700)


@pytest.mark.parametrize("value", [b"", b"2 cores", b"-1", b"1" * 5000, b"1" * 19, b"\xc2\xb2"])
def test_a_note_that_is_no_number_counts_for_nothing(folder, value):
    os.setxattr(folder, LIMIT_NOTE, value[:2000])

    assert noted_size(folder, otherwise=CpuSize(232, 700)) == CpuSize(232, 700)


@pytest.mark.parametrize(
    ("events", "is_so"),
    [("populated 1\nfrozen 0\n", True), ("populated 0\nfrozen 0\n", False), ("", True)],
)
def test_the_kernel_says_whether_a_cgroup_is_populated(tmp_path, events, is_so):
    (tmp_path / "cgroup.events").write_text(events)

    assert is_populated(tmp_path) is is_so


def test_where_the_kernel_does_not_say_there_may_be_somebody(tmp_path):
    assert is_populated(tmp_path)
    assert not is_populated(tmp_path / "absent")
