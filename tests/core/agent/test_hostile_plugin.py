"""A real agent beside a plugin that raises every hostile error from every hook's function."""

import pytest

from tests.core.agent.running_agent import RunningAgent
from tests.core.plugin_host import hostility
from tests.core.plugin_host.hostility import ERRORS

PLUGIN = """
from functools import partial

from temper_core import Detector, Exporter, Instrument, Invariant, OpenInstrument, hookimpl
from hostility import ERRORS

KINDS = tuple(ERRORS)


def misbehave(number, *_):
    raise ERRORS[KINDS[number]]()


class Odd(OpenInstrument):
    def __init__(self, number, context):
        self.tell = self.section = self.checks = self.defects = partial(misbehave, number)

    def tell(self, snapshot): ...
    def section(self, snapshot): ...
    def checks(self): ...
    def defects(self): ...


@hookimpl
def temper_instruments():
    return [Instrument(f"odd-{n}", partial(Odd, n)) for n in range(len(KINDS))]


@hookimpl
def temper_exporters():
    return [Exporter(f"odd-{n}", partial(misbehave, n)) for n in range(len(KINDS))]


@hookimpl
def temper_detectors():
    return [Detector(f"odd-{n}", partial(misbehave, n)) for n in range(len(KINDS))]


@hookimpl
def temper_invariants():
    return [Invariant(f"odd_{n}", partial(misbehave, n), why="") for n in range(len(KINDS))]
"""


@pytest.fixture
def agent(tmp_path, monkeypatch):
    plugins = tmp_path / "plugins"
    info = plugins / "odd-1.0.dist-info"
    info.mkdir(parents=True)
    (plugins / "odd_plugin.py").write_text(PLUGIN)
    (plugins / "hostility.py").symlink_to(hostility.__file__)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[temper.plugins]\nodd = odd_plugin\n")
    monkeypatch.setenv("PYTHONPATH", str(plugins))
    running = RunningAgent(tmp_path, settings="[plugin_host]\ndeadline_s = 0.2\n")
    yield running
    running.stop()


def test_the_loop_turns_and_everything_is_answered_beside_every_hostile_error(agent):
    seen = set()

    def turned():
        seen.add(agent.observation()["at"])
        odd = next(
            each for each in agent.get("/plugins").json()["plugins"] if each["name"] == "odd"
        )
        return odd["lost"] if len(seen) > 3 and len(odd["lost"]) > len(ERRORS) else None

    agent.wait_for(agent.observation, "observation")
    lost = agent.wait_for(turned, "further turns, and parts that are set aside")
    statuses = {path: agent.get(path).status_code for path in ("/metrics", "/checks", "/healthz")}

    assert statuses == dict.fromkeys(statuses, 200)
    assert all(line.isprintable() and len(line) < 400 for line in lost)
    assert agent.stop() == 0
