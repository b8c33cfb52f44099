"""Each command that the page of a node names, typed on a terminal of that node."""

import json
import re
import shlex
import subprocess
from functools import reduce
from pathlib import Path

import pytest

import temper_plugin_dashboard
from tests.dashboard.dashboard_agent import TEMPER
from tests.patience import PATIENCE_S

ASSETS = Path(temper_plugin_dashboard.__file__).parent / "assets"
QUOTED = re.compile(r"""["`>](temper [a-z][^"`<]*)["`<]""")
FILLED = {
    "${hours}": "24",
    "${pod}": "shop",
    "${subject}": "shop",
    "--explain NAME": "--explain plugin_health",
    "profiles show ID": "profiles show nginx",
    "${command}": "temper plan",
}
USAGE_ERROR = 2
UNKNOWN_TRACE = "temper trace fetch ID"
"""The agent of this test has no trace: exit code 2 and one line."""
LEFT_OUT = ("temper safe-mode on", "temper trace analyze FILE")
"""The first acts on the node. The second reads a file and asks no agent."""


def commands():
    """Return the commands in the scripts of the page, with real names in them."""
    found = set()
    for script in (*ASSETS.glob("*.js"), *ASSETS.glob("views/*.js")):
        for command in QUOTED.findall(script.read_text()):
            found.add(reduce(lambda text, pair: text.replace(*pair), FILLED.items(), command))
    return sorted(found.difference(LEFT_OUT))


def typed(agent, *words, **options):
    return subprocess.run(
        [TEMPER, *words, "--settings", agent.folder / "agent.toml"],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
        **options,
    )


def test_the_pages_name_commands():
    assert {"temper plan", "temper top", "temper explain shop"} <= set(commands())
    assert not [command for command in commands() if "$" in command]


@pytest.mark.parametrize("command", commands())
def test_a_command_that_the_page_names_works_as_it_is_printed(command, agent, tmp_path):
    words = shlex.split(command)[1:]
    ran = typed(agent, *words, cwd=tmp_path)

    assert "Usage:" not in ran.stderr
    assert "Traceback" not in ran.stderr
    if not command.startswith(UNKNOWN_TRACE):
        assert ran.returncode != USAGE_ERROR, ran.stderr
        assert ran.stdout


def test_temper_plan_shows_what_an_observing_agent_would_plan(agent):
    planned = typed(agent, "plan", "--output", "json")

    [layer] = [each for each in json.loads(planned.stdout)["layers"] if "shop" in each["pods"]]
    assert layer["name"] == "high"


@pytest.mark.parametrize("option", ["--machine", "--node"])
def test_the_pods_of_this_node_are_planned_on_this_node(agent, option):
    refused = typed(agent, "plan", option, "other")

    assert refused.returncode == USAGE_ERROR
    assert f"{option} needs --pods" in refused.stderr
