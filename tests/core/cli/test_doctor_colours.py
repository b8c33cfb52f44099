import sys
from functools import partial
from pathlib import Path

import pytest

from tests.core.cli.pseudo_terminal import PseudoTerminal

DOCTOR = [str(Path(sys.executable).with_name("temper")), "doctor"]
GREEN = "\x1b[32m"


@pytest.fixture
def printed(tmp_path):
    """Run doctor on a terminal, with directories of its own, and return what it prints."""
    settings = tmp_path / "agent.toml"
    settings.write_text(
        f'run_directory = "{tmp_path}/run"\nstate_directory = "{tmp_path}/state"\n'
        '[server]\nlisten = ""\n'
    )
    return partial(on_a_terminal, [*DOCTOR, "--settings", str(settings)])


def on_a_terminal(command, **environment):
    terminal = PseudoTerminal(command, width=200, height=100, **environment)
    try:
        terminal.wait_for(lambda _: "the kernel does not enforce" in terminal.written, "the note")
        return terminal.written
    finally:
        terminal.close()


def test_the_checks_are_coloured_on_a_terminal(printed):
    assert f"{GREEN}ok   \x1b[0m " in printed()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colours_gets_none(printed, environment):
    assert "\x1b[3" not in printed(**environment)


def test_no_color_without_a_value_changes_nothing(printed):
    assert GREEN in printed(NO_COLOR="")
