"""Caps while the state disk hangs: they come back, and nothing sets them again."""

import pytest

from temper_core import CheckState, Instrument, hookimpl
from temper_core.events.event_log import EventLog
from temper_core.instruments.context import AgentParts
from temper_core.instruments.helper_calls import HelperCalls
from temper_core.instruments.instruments import Instruments
from temper_core.instruments.lookup import PlanLookup
from temper_core.plugin_host import PluginHost
from temper_core.profiles.trials import TrialBook
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import make_machine, make_snapshot
from temper_plugin_power.node.control import LET_GO
from temper_plugin_power.node.instrument import PowerNode
from temper_plugin_power.settings.node import NodeSettings
from tests.power.node.rapl_tree import RaplTree
from tests.power.node.stalling_disk import Disk
from tests.power.node.twin_file import TwinFile


class NoRequests:
    """Nobody requests safe mode."""

    def is_requested(self):
        return False


class Plugin:
    """A plugin with the instrument that *opening* opens."""

    def __init__(self, opening):
        self._opening = opening

    @hookimpl
    def temper_instruments(self):
        return [Instrument("power", self._opening)]


class Agent:
    """The instruments of an agent whose plugins have a short deadline."""

    def __init__(self, folder):
        self.tree = RaplTree(folder / "sys")
        self.twin = TwinFile(folder / "spec/twin.json")
        self.disk = Disk(folder / "temper", "power", 1_000_000)
        self.events = EventLog()
        self.at_s = 100.0
        given = NodeSettings(
            actuate=True,
            interval="1s",
            spec_file=str(self.twin.path),
            powercap_path=str(self.tree.powercap),
        )
        host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.5)))
        host.add(Plugin(lambda context: PowerNode.of(given, context)), "power")
        parts = AgentParts(
            node="node-1",
            machine=make_machine(),
            lookup=PlanLookup(lambda: None),
            safe_mode=NoRequests(),
            helpers=HelperCalls(),
            trials=TrialBook(),
            recorder=self.events,
            state=lambda _name, _limit: self.disk,
        )
        self.instruments = Instruments(host, host.gather("temper_instruments", Instrument), parts)
        self.instruments.open()

    def look(self):
        """Let one window pass. Return the section."""
        self.at_s += 5
        snapshot = self.instruments.with_sections(make_snapshot(monotonic_s=self.at_s))
        self.instruments.tell(snapshot)
        return snapshot.sections["power"].content

    def check(self):
        return next(check for _, check in self.instruments.checks() if check.name == "power caps")

    def limits(self):
        return [self.tree.limit_watts(number) for number in (0, 1)]

    def restored(self):
        return [each.subject for each in self.events.after() if each.kind == "power_cap_restored"]


@pytest.fixture
def agent(tmp_path):
    made = Agent(tmp_path)
    yield made
    made.disk.answers.set()
    made.instruments.close()


def test_a_disk_that_hangs_while_a_cap_changes_leaves_no_cap_in_force(agent):
    agent.twin.say(packagePowerCapWatts=100)
    agent.look()
    before = agent.limits()
    agent.disk.answers.clear()
    agent.twin.say(packagePowerCapWatts=80)

    agent.look()
    during = agent.limits()
    section, check = agent.look(), agent.check()

    assert (before, during) == ([100.0, 100.0], [150.0, 150.0])
    assert agent.restored() == ["package-0", "package-1"]
    assert (section["caps"]["message"], section["caps"]["watts"]) == (LET_GO, {})
    assert (check.state, check.detail) == (CheckState.WARNING, LET_GO)


def test_a_disk_that_hangs_while_caps_are_lifted_keeps_no_cap_in_force(agent):
    agent.twin.say(packagePowerCapWatts=100)
    agent.look()
    agent.disk.answers.clear()
    agent.twin.path.unlink()

    agent.look()

    assert agent.limits() == [150.0, 150.0]


def test_a_disk_that_answers_again_sets_no_cap_again(agent):
    agent.twin.say(packagePowerCapWatts=100)
    agent.look()
    agent.disk.answers.clear()
    agent.twin.say(packagePowerCapWatts=80)
    agent.look()

    agent.disk.answers.set()
    agent.look()
    during = agent.limits()
    agent.instruments.close()

    assert (during, agent.limits()) == ([150.0, 150.0], [150.0, 150.0])
    assert b'"values": []' in (agent.disk.path / "kernel-values.json").read_bytes()


def test_an_agent_that_ends_while_the_disk_hangs_leaves_no_cap_in_force(agent):
    agent.twin.say(packagePowerCapWatts=100)
    agent.look()
    agent.disk.answers.clear()

    agent.instruments.close()

    assert agent.limits() == [150.0, 150.0]
