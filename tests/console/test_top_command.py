import os
import signal
import subprocess
import time

import pytest
from attrs import evolve

from temper_core.client import NoAgentError
from temper_plugin_console import top
from tests.core.cli.processes import temper_process
from tests.patience import PATIENCE_S


def test_without_an_agent_there_is_an_error_with_the_code_of_the_machine(temper):
    result = temper(top.command)

    assert isinstance(result.exception, NoAgentError)
    assert result.exception.exit_code == 3


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("arguments", [["top", "--once"], ["map"]])
def test_a_name_that_the_output_cannot_encode_is_shown_as_far_as_it_can(node, view, arguments):
    odd = evolve(view.last.threads[0], comm="spün字", cpu=0)
    view.last = evolve(view.last, threads=(odd,))

    asking = temper_process(
        node, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    told, errors = asking.communicate(timeout=PATIENCE_S)

    assert (asking.returncode, errors) == (0, "")
    assert "sp?n?" in told


@pytest.mark.usefixtures("agent")
def test_top_once_prints_one_screen(temper):
    result = temper(top.command, "--once")

    assert result.exit_code == 0
    assert result.output.count("generation 7") == 1
    assert "ib_worker" in result.output


@pytest.mark.usefixtures("agent")
def test_top_prints_one_screen_into_a_pipe_and_ends(node):
    watching = temper_process(node, "top", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    told, errors = watching.communicate(timeout=PATIENCE_S)

    assert told.count("generation 7") == 1
    assert (watching.returncode, errors) == (0, "")


@pytest.mark.usefixtures("agent")
def test_top_prints_as_many_screens_as_it_is_told(temper):
    result = temper(top.command, "--iterations", "3", "--interval", "0.2")

    assert result.output.count("generation 7") == 3


@pytest.mark.usefixtures("agent")
def test_top_says_so_and_goes_on_when_the_agent_stumbles(temper, view):
    answers = iter([view.observe_document(), None, view.observe_document()])
    view.observe_document = lambda _: next(answers)

    result = temper(top.command, "--iterations", "3", "--interval", "0.2")

    assert result.exit_code == 0
    assert result.output.count("generation 7") == 3
    assert result.output.count("nothing was observed yet") == 1


@pytest.mark.usefixtures("agent")
def test_ctrl_c_ends_top_quietly(node):
    endless = ("top", "--iterations", "1000")
    watching = temper_process(node, *endless, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = watching.stdout.readline()

    watching.send_signal(signal.SIGINT)
    _, errors = watching.communicate(timeout=PATIENCE_S)

    assert "generation 7" in first
    assert errors == ""
    assert watching.returncode == 0


@pytest.mark.usefixtures("agent")
def test_top_draws_on_a_terminal_and_gives_it_back(node):
    leader, follower = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    watching = temper_process(
        node, "top", "--iterations", "2", "--interval", "0.2",
        stdin=follower, stdout=follower, stderr=follower, env=environment,
    )  # fmt: skip
    os.close(follower)

    written = read_terminal(leader)

    assert watching.wait(PATIENCE_S) == 0
    assert b"generation 7" in written
    assert written.rfind(b"\x1b[?25h") > written.rfind(b"\x1b[?25l") > -1


def read_terminal(leader: int) -> bytes:
    written, deadline = b"", time.monotonic() + PATIENCE_S
    with open(leader, "rb", buffering=0) as terminal:
        while time.monotonic() < deadline:
            try:
                part = terminal.read(4096)
            except OSError:
                break
            written += part
    return written
