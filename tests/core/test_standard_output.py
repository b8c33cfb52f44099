import os
import subprocess
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


def test_closed_descriptors_are_those_of_no_other_file():
    code = f'''
import os, subprocess, sys
from temper_core.standard_output import deliver

SEES = """
import os
null = os.stat(os.devnull)
os._exit(0 if all(os.path.samestat(null, os.fstat(number)) for number in (0, 2)) else 1)
"""

def command():
    sys.stderr.write("a message")
    return subprocess.run([sys.executable, "-c", SEES], check=False).returncode

code = deliver(command)
free = os.open({__file__!r}, os.O_RDONLY)
os._exit(code if free > 2 else 9)
'''
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" <&- 2>&-', sys.executable, code],
        stdout=subprocess.PIPE,
        check=False,
    )

    assert done.returncode == 0
