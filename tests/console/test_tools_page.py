"""docs/tools.md names every key, pane and option there is."""

from pathlib import Path

import pytest

from temper_plugin_console import diff, top
from temper_plugin_console.top.view import PANES, SORTS

PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()


@pytest.mark.parametrize("key", [*SORTS, "t", "-", "q", "?", "/"])
def test_a_key_is_in_the_table(key):
    assert any(f"`{key}`" in line for line in PAGE.splitlines() if line.startswith("| `"))


@pytest.mark.parametrize(("number", "pane"), [*enumerate(PANES, start=1)])
def test_a_pane_is_in_the_table(number, pane):
    assert f"\n| {number} {pane} |" in PAGE


@pytest.mark.parametrize(
    "option",
    [
        option
        for command in (top.command, diff.command)
        for each in command.params
        for option in each.opts
        if option.startswith("--") and option != "--settings"
    ],
)
def test_an_option_is_told_of(option):
    assert f"{option}" in PAGE
