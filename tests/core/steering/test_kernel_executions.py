"""The executions of programs that the running kernel notes, of real processes."""

import os
import subprocess

import pytest

from temper_core.records.executions import Execution
from temper_core.steering.kernel_records import MOST_EXECS
from tests.core.steering.processes import named, until


@pytest.fixture
def heard(kernel):
    """Collect the executions since the test began, as often as they are asked for."""
    state = {"seen": kernel.exec_count, "found": []}

    def hear():
        found, state["seen"] = kernel.executions(state["seen"])
        state["found"] += found
        return state["found"]

    return hear


def test_a_process_that_executes_another_program_is_noted_with_its_parent(heard, spawn):
    script = "read line; exec sleep 600"
    shell = spawn("/bin/sh", "-c", script, stdin=subprocess.PIPE, text=True)
    named(shell, "sh")
    until(lambda: shell.pid in {execution.pid for execution in heard()})
    before = len(heard())

    shell.stdin.write("go\n")
    shell.stdin.flush()
    named(shell)

    again = until(lambda: [e for e in heard()[before:] if e.pid == shell.pid])
    assert again == [Execution(shell.pid, os.getpid())]


def test_the_child_of_a_shell_is_noted_as_its_child(heard, spawn):
    shell = spawn("/bin/sh", "-c", "sleep 600; true", start_new_session=True)

    children = until(lambda: [e for e in heard() if e.parent == shell.pid])

    assert len(children) == 1
    subprocess.run(["kill", str(children[0].pid)], check=True)


def test_while_nothing_executes_there_is_nothing_to_read(kernel):
    seen = kernel.exec_count

    found, then = kernel.executions(seen)

    assert len(found) == then - seen


def test_the_last_executions_are_kept_and_the_loss_of_others_shows(kernel):
    before = kernel.exec_count
    script = f"i=0; while [ $i -lt {MOST_EXECS + 30} ]; do /bin/true; i=$((i+1)); done"
    subprocess.run(["/bin/sh", "-c", script], check=True)

    found, seen = kernel.executions(before)

    assert seen - before > MOST_EXECS
    assert len(found) == MOST_EXECS
