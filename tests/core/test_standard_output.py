import os
import sys
from contextlib import redirect_stdout

import pytest

from temper_core.standard_output import deliver


@pytest.fixture
def pipe():
    """A pipe: the number of the end that reads, and a stream that writes."""
    reading, writing = os.pipe()
    with open(writing, "w") as stream:  # noqa: PTH123 - a descriptor
        yield reading, stream


def test_what_a_command_prints_arrives_and_its_code_is_returned(pipe):
    reading, stream = pipe

    def command():
        sys.stdout.write("a result\n")
        return 1

    with redirect_stdout(stream):
        code = deliver(command)

    assert code == 1
    assert os.read(reading, 100) == b"a result\n"
    os.close(reading)


def test_standard_output_is_given_back(pipe):
    reading, stream = pipe

    with redirect_stdout(stream):
        deliver(lambda: 0)

        assert sys.stdout is stream
    os.close(reading)


def test_a_command_that_never_ends_is_cut_short_once_its_reader_has_gone(pipe):
    reading, stream = pipe
    os.close(reading)

    def command():
        while True:
            sys.stdout.write("another screen\n")

    with redirect_stdout(stream):
        assert deliver(command) == 0
