"""Calls that are each within their deadline, and together take too long.

The clock is the test's own: a plugin that takes 3 s moves it by 3 s.
"""

import pytest
from attrs import evolve
from structlog.testing import capture_logs

from temper_core import Invariant, hookimpl
from temper_core.lint.windows import Linter
from temper_core.metrics.scraper import Scraper
from temper_core.plugin_host import PluginHost
from temper_core.plugin_host.hosted_plugin import Busy
from temper_core.plugin_host.shared_time import SharedTime, time_of_a_look
from temper_core.records.contributions import Exporter, Metric, MetricSample
from temper_core.settings.models import LintSettings
from temper_core.testing import make_snapshot
from tests.core.server.fake_view import FakeView

SNAPSHOT = make_snapshot(monotonic_s=100.0)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Plugin:
    """A plugin whose calls take a while."""

    def __init__(self, name, clock, seconds):
        self.name, self.clock, self.seconds, self.calls = name, clock, seconds, 0

    def work(self, _snapshot):
        self.calls += 1
        self.clock.now += self.seconds
        return [Metric(f"temper_{self.name}", "Help.", [MetricSample(1)])]

    @hookimpl
    def temper_invariants(self):
        def check(snapshot):
            self.work(snapshot)
            return []

        return [Invariant(self.name, check, "because")]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(autouse=True)
def logged():
    with capture_logs() as entries:
        yield entries


def host_with(*plugins):
    host = PluginHost()
    for plugin in plugins:
        host.add(plugin, plugin.name)
    return host


def test_the_slowest_part_is_set_aside_when_the_time_is_spent(clock, logged):
    slow, quick = Plugin("slow", clock, 4), Plugin("quick", clock, 1)
    host = host_with(slow, quick)
    shared = SharedTime(host, 5, "both have", clock)

    shared.call("quick", quick.work, None, part="one")
    assert not logged
    shared.call("slow", slow.work, None, part="two")

    assert host.why_lost("slow", "two") == "took 4.0 s of the 5 s that both have"
    assert not host.why_lost("quick", "one")
    assert [entry["event"] for entry in logged] == ["plugin_part_set_aside"]


def test_nothing_is_called_after_the_time_is_spent_and_that_is_no_failure(clock):
    slow, quick = Plugin("slow", clock, 5), Plugin("quick", clock, 0)
    host = host_with(slow, quick)
    shared = SharedTime(host, 5, "both have", clock)
    shared.call("slow", slow.work, None, part="two")

    with pytest.raises(Busy, match="others took the 5 s that both have"):
        shared.call("quick", quick.work, None, part="one")

    assert (quick.calls, host.failures["quick"]) == (0, 0)
    shared.begin()
    shared.call("quick", quick.work, None, part="one")
    assert quick.calls == 1


def test_slow_invariants_of_many_plugins_have_one_bound_in_a_look(clock):
    plugins = [Plugin(f"slow_{number}", clock, 4) for number in range(5)]
    host = host_with(*plugins)
    look_time = evolve(time_of_a_look(host, 5), clock=clock)
    found = host.gather("temper_invariants", Invariant)
    linter = Linter([(c.plugin, c.record) for c in found], LintSettings(), look_time.call)

    look_time.begin()
    violations = linter.judge(SNAPSHOT)

    assert [plugin.calls for plugin in plugins] == [1, 1, 1, 0, 0]
    lost = {state.name: state.lost for state in host.states() if state.lost}
    assert lost == {
        "slow_0": ("invariants: took 4.0 s of the 10 s that all plugins have in a look",)
    }
    unheard = {violation.subject: violation.message for violation in violations}
    assert sorted(unheard) == ["slow_3", "slow_4"]
    assert all("was not called" in message for message in unheard.values())


def test_slow_exporters_have_one_bound_in_a_scrape(clock):
    plugins = [Plugin(f"slow_{number}", clock, 3) for number in range(4)]
    view = SlowView(host_with(*plugins), clock)
    view.last = SNAPSHOT
    view.exported = [(plugin.name, Exporter("metrics", plugin.work)) for plugin in plugins]

    text, _ = Scraper(view, 1000).scrape("")

    assert [plugin.calls for plugin in plugins] == [1, 1, 0, 0]
    assert b"temper_slow_1 1" in text
    assert [state.name for state in view.host.states() if state.lost] == ["slow_0"]


class SlowView(FakeView):
    """A view whose exporters the real host calls, as in the agent."""

    def __init__(self, host, clock):
        super().__init__()
        self.host, self.clock = host, clock

    def time_of_a_scrape(self):
        return SharedTime(self.host, 5, "all exporters have in a scrape", self.clock)
