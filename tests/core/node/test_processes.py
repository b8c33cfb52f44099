import os

import pytest

from temper_core.node.polled_values import PolledValues
from temper_core.node.processes import ProcessNames

linux_only = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")  # noqa: PTH110 - evaluated at import


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
