"""A running agent with a plugin that is one file."""

import json
import subprocess

from tests.core.agent.running_agent import TEMPER, RunningAgent

PLUGIN = """
from temper_core import Check, Instrument, OpenInstrument, hookimpl


class Watch(OpenInstrument):
    def checks(self):
        return [Check("file-plugin", "ok", "loaded from one file")]


@hookimpl
def temper_instruments():
    return [Instrument("watch", lambda context: Watch())]
"""


def test_it_is_at_work_like_an_installed_one(tmp_path):
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "watch.py").write_text(PLUGIN)
    agent = RunningAgent(tmp_path, settings=f'[plugin_host]\ndirectory = "{directory}"\n')
    try:
        agent.wait_for(agent.observation, "observation")
        plugins = {each["name"]: each for each in agent.get("/plugins").json()["plugins"]}
        checks = agent.get("/checks").text
    finally:
        code = agent.stop()

    assert plugins["watch"]["state"] == "active"
    assert "loaded from one file" in checks
    assert code == 0
    assert [path.name for path in directory.iterdir()] == ["watch.py"]


BROKEN = """
from temper_core import Endpoint, hookimpl


def fails(request):
    raise KeyError("absent")


@hookimpl
def temper_endpoints():
    return [Endpoint("broken", "GET", "/broken", "Broken.", fails)]
"""


def test_a_part_that_the_agent_has_set_aside_is_named_by_temper_plugins(tmp_path):
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "shop.py").write_text(BROKEN)
    agent = RunningAgent(tmp_path, settings=f'[plugin_host]\ndirectory = "{directory}"\n')
    listing = [TEMPER, "plugins", "--agent", "--settings", agent.path]
    try:
        agent.wait_for(agent.observation, "observation")
        for _ in range(3):
            agent.get("/broken")
        table = subprocess.check_output(listing, text=True)
        document = subprocess.check_output([*listing, "--output", "json"])
    finally:
        agent.stop()

    shop = next(row for row in json.loads(document) if row["name"] == "shop")
    why = "endpoint broken: KeyError: 'absent' (shop.py:6 in fails)"
    assert (shop["state"], shop["lost"]) == ("degraded", [why])
    [line] = [line for line in table.splitlines() if line.startswith("shop ")]
    assert line.split(maxsplit=4)[2:] == ["degraded", "endpoints", f"set aside: {why}"]
