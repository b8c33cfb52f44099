"""The table of ``temper settings``."""

import json

import pytest
from click.testing import CliRunner

from temper_core.cli.settings import command

SETTINGS = """
[[workloads]]
name = "busy"
process = "worker"
tier = "normal"
[[workloads]]
name = "easy"
unit = "easy.service"
tier = "low"
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(SETTINGS)
    return path


def printed(*words):
    done = CliRunner().invoke(command, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done.output


def test_each_table_of_a_list_has_a_row_without_what_is_not_set(path):
    lines = [line.rstrip() for line in printed("--settings", path).splitlines()]

    busy, easy = (line for line in lines if line.startswith("workloads["))
    assert '{"name": "busy", "process": "worker", "tier": "normal"}' in busy
    assert '"unit": "easy.service"' in easy


def test_only_what_differs_from_its_default_is_shown_on_request(path):
    words = ("--settings", path, "--changed", "--output", "json")

    assert [row["setting"] for row in json.loads(printed(*words))] == ["workloads"]
