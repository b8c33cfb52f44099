"""A running agent with a plugin that is one file."""

from tests.core.agent.running_agent import RunningAgent

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
