import os
import time

import pytest

from temper_core.errors import MachineError
from temper_plugin_tracer.switch_rate import read_switches


def test_switches_of_this_machine_grow_with_those_of_this_process():
    before = read_switches()

    for _ in range(50):
        time.sleep(0.0005)

    assert read_switches() >= before + 50


def test_the_count_is_found_among_the_other_lines(tmp_path):
    (tmp_path / "stat").write_text("cpu  1 2 3\nintr 5 0 7\nctxt 123456\nbtime 9\n")

    assert read_switches(str(tmp_path)) == 123456


@pytest.mark.parametrize("content", [None, "", "ctxt 5\n", "cpu 1\nctxt\n", "cpu 1\nctxt x\n"])
def test_a_kernel_that_does_not_tell_is_named_with_its_file(tmp_path, content):
    if content is not None:
        (tmp_path / "stat").write_text(content)

    with pytest.raises(MachineError, match="stat has no count of switches") as told:
        read_switches(str(tmp_path))

    assert os.fspath(tmp_path) in str(told.value)
