import json
import signal
import subprocess
import sys
from itertools import islice
from types import SimpleNamespace

import click
import pytest
import yaml
from attrs import evolve
from click.testing import CliRunner

from temper_core import watching
from temper_core.cli import observe, safe_mode
from temper_core.console import output_option, print_json, watch_options
from temper_core.errors import MachineError
from tests.core.cli.processes import RUN_TEMPER, temper_process
from tests.core.cli.pseudo_terminal import PseudoTerminal
from tests.patience import PATIENCE_S

QUICK = ("--watch", "--interval", "0.1")


class EnoughError(Exception):
    """Ends a watch from within."""


def command_of(results):
    """Return a command that prints a result each time, or raises it, and then ends."""
    coming = iter(results)

    @click.command()
    @output_option
    @watch_options
    def command(output):
        result = next(coming, EnoughError())
        if isinstance(result, Exception):
            raise result
        print_json(result) if output == "json" else click.echo(result)

    return command


def watched(results, *arguments):
    ended = CliRunner().invoke(command_of(results), [*QUICK, *arguments])
    return ended.stdout, ended.stderr, ended.exception


def test_results_in_a_pipe_follow_each_other():
    output, _, _ = watched(["one", "two"])

    assert output == "one\n\ntwo\n"


def test_documents_in_a_pipe_can_be_taken_apart():
    as_json, _, _ = watched([{"n": 1}, {"n": 2}], "-o", "json")
    as_yaml, _, _ = watched([{"n": 1}, {"n": 2}], "-o", "yaml")

    first, end = json.JSONDecoder().raw_decode(as_json)
    assert [first, json.loads(as_json[end:])] == [{"n": 1}, {"n": 2}]
    assert list(yaml.safe_load_all(as_yaml)) == [{"n": 1}, {"n": 2}]


def test_a_failure_between_two_results_is_shown_and_ends_nothing():
    output, messages, ended_by = watched(["one", MachineError("no agent answers"), "two"])

    assert output == "one\n\ntwo\n"
    assert messages == "temper: no agent answers\n"
    assert isinstance(ended_by, EnoughError)


def test_a_failure_at_first_ends_the_command():
    output, _, ended_by = watched([MachineError("no agent answers"), "two"])

    assert output == ""
    assert isinstance(ended_by, MachineError)


def test_an_exit_code_of_one_result_ends_nothing():
    output, _, _ = watched([click.exceptions.Exit(1), "two"])

    assert output == "\ntwo\n"


def test_without_the_option_there_is_one_result():
    assert CliRunner().invoke(command_of(["one", "two"]), []).output == "one\n"


@pytest.mark.parametrize("interval", ["0", "nan", "x"])
def test_a_wrong_interval_is_refused(interval):
    ended = CliRunner().invoke(command_of(["one"]), ["-w", "--interval", interval])

    assert ended.exit_code == 2
    assert "--interval" in ended.output


def test_a_word_in_place_of_a_number_is_answered_with_the_range():
    ended = CliRunner().invoke(command_of(["one"]), ["-w", "--interval", "soon"])

    assert "'soon' is not a number; allowed is at least 0.1 and at most 3600" in ended.output


@pytest.mark.usefixtures("agent")
def test_the_checks_of_a_host_are_watched(node):
    asking = temper_process(node, "doctor", *QUICK, stdout=subprocess.PIPE)
    try:
        lines = (line for line in asking.stdout if line.startswith("This machine "))
        results = list(islice(lines, 2))
    finally:
        asking.send_signal(signal.SIGINT)
        asking.stdout.close()

    assert len(results) == 2
    assert asking.wait(PATIENCE_S) in (0, 130)


@pytest.mark.usefixtures("agent")
def test_the_requests_for_safe_mode_are_watched(temper, view, monkeypatch):
    """A process of its own would look for the requests on this machine."""
    pauses = iter([None])

    def sleep(_):
        if next(pauses, EnoughError) is EnoughError:
            raise EnoughError

    monkeypatch.setattr(watching, "time", SimpleNamespace(sleep=sleep))
    view.requests["alice"] = {"reason": "incident 7", "since": 1.0}

    result = temper(safe_mode.command, "status", *QUICK)

    assert isinstance(result.exception, EnoughError)
    assert result.stdout.count("mode: enforcing") == 2
    assert result.stdout.count("incident 7") == 2


@pytest.mark.parametrize("action", ["on", "off"])
def test_a_request_for_safe_mode_is_not_repeated(temper, node, action):
    result = temper(safe_mode.command, action, "-w")

    assert result.exit_code == 2
    assert f"--watch is for 'status', not for '{action}'" in result.output
    assert not node.file.exists()


@pytest.mark.usefixtures("agent")
def test_a_terminal_shows_the_newest_result_in_place_of_the_one_before(node, view):
    command = [sys.executable, "-c", RUN_TEMPER, "observe", *QUICK]
    terminal = PseudoTerminal([*command, "--settings", str(node.settings_path)])
    try:
        first = terminal.wait_for(lambda lines: "node-a" in lines[1], "first result")
        view.last = evolve(view.last, node="node-b")
        second = terminal.wait_for(lambda lines: "node-b" in lines[1], "second result")
        terminal.send(signal.SIGINT)
        code = terminal.wait_for_end()
    finally:
        terminal.close()

    assert first[0].count(":") == second[0].count(":") == 2
    assert not any("node-a" in line for line in second)
    assert code == 130


@pytest.mark.usefixtures("agent")
def test_a_watch_ends_with_the_reader_of_its_pipe(node):
    asking = temper_process(node, "observe", *QUICK, stdout=subprocess.PIPE)
    assert "node-a" in asking.stdout.readline()
    asking.stdout.close()

    assert asking.wait(PATIENCE_S) == 0


@pytest.mark.usefixtures("agent")
def test_nothing_is_recorded_again_and_again(temper, tmp_path):
    result = temper(observe.command, "-w", "--record", str(tmp_path / "file"))

    assert result.exit_code == 2
    assert "--watch" in result.output
