"""Plugins that could not answer by their deadline when the agent started, and can later."""

import threading
import time

import pytest
from structlog.testing import capture_logs

from temper_core import Invariant, ThreadGroup, WorkloadProfile, hookimpl
from temper_core.plugin_host import PluginHost, load_host, retries
from temper_core.profiles.watch import ProfileWatch
from temper_core.settings.models import PluginHostSettings, ProfileSettings, Settings
from tests.patience import PATIENCE_S

DEADLINE_S = 0.3


def profile(name):
    return WorkloadProfile(name, (ThreadGroup("rest"),))


class SlowDisk:
    """A plugin whose reads take as long as its disk lets them."""

    def __init__(self):
        self.is_quick = threading.Event()
        self.asked = []

    @hookimpl
    def temper_profiles(self):
        self.asked.append("temper_profiles")
        self.is_quick.wait()
        return [profile("from-a-slow-disk")]

    @hookimpl
    def temper_invariants(self):
        self.asked.append("temper_invariants")
        return [Invariant("late", lambda _: (), why="it always holds")]


class Quick:
    def __init__(self):
        self.asked = 0

    @hookimpl
    def temper_profiles(self):
        self.asked += 1
        return [profile("quick")]


@pytest.fixture
def host(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.05)
    return PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=DEADLINE_S)))


def gathered(host, again=False):
    gather = host.gather_again if again else host.gather
    return sorted(found.record.id for found in gather("temper_profiles", WorkloadProfile))


def until_it_returns(host):
    ends = time.monotonic() + PATIENCE_S
    while not host.retry():
        assert time.monotonic() < ends
        time.sleep(0.01)


def state_of(host, name):
    return {state.name: state for state in host.states()}[name]


def test_a_plugin_that_waited_for_its_disk_is_asked_again_and_others_are_not(host):
    slow, quick = SlowDisk(), Quick()
    host.add(slow, "slow")
    host.add(quick, "quick")
    with capture_logs() as logs:
        at_start = gathered(host)
        slow.is_quick.set()
        until_it_returns(host)
    later = gathered(host, again=True)

    assert (at_start, later) == (["quick"], ["from-a-slow-disk", "quick"])
    assert (slow.asked, quick.asked) == (["temper_profiles"] * 2, 1)
    assert state_of(host, "slow").state == "active"
    assert [entry["event"] for entry in logs] == ["plugin_set_aside", "plugin_returned"]


def test_nothing_waits_while_a_plugin_is_tried_again(host):
    slow = SlowDisk()
    host.add(slow, "slow")
    with capture_logs():
        gathered(host)
        ends = time.monotonic() + PATIENCE_S
        slow_turn_s = 0.0
        while len(slow.asked) < 2:
            began = time.thread_time()
            host.retry()
            slow_turn_s = max(slow_turn_s, time.thread_time() - began)
            assert time.monotonic() < ends
            # The thread that was left behind ends when its disk answers.
            slow.is_quick.set()
            slow.is_quick.clear()
            time.sleep(0.01)
        began = time.monotonic()
        with pytest.raises(Exception, match="is set_aside"):
            host.call("slow", int)
        waited_s = time.monotonic() - began

    slow.is_quick.set()
    assert waited_s < DEADLINE_S
    assert slow_turn_s < DEADLINE_S


def test_a_plugin_whose_first_call_never_ends_is_not_called_again(host):
    slow = SlowDisk()
    host.add(slow, "slow")
    with capture_logs():
        gathered(host)
        threads = threading.active_count()
        for _ in range(50):
            host.retry()
            time.sleep(0.01)

    assert slow.asked == ["temper_profiles"]
    assert threading.active_count() <= threads
    slow.is_quick.set()


def test_a_plugin_that_computed_until_its_deadline_is_not_called_again(host):
    asked = []

    class Spins:
        @hookimpl
        def temper_profiles(self):
            asked.append(1)
            while True:
                pass

    host.add(Spins(), "spins")
    with capture_logs():
        gathered(host)
        for _ in range(50):
            host.retry()
            time.sleep(0.01)

    assert asked == [1]


def test_the_hooks_that_are_asked_only_at_the_start_are_named_as_lost(host):
    slow = SlowDisk()
    host.add(slow, "slow")
    with capture_logs():
        gathered(host)
        host.gather("temper_invariants", Invariant)
        slow.is_quick.set()
        until_it_returns(host)

    [lost] = state_of(host, "slow").lost
    assert lost.startswith("temper_invariants: did not answer at the start")


LATE_TO_LOAD = """
    import os, time
    from temper_core import ThreadGroup, WorkloadProfile, hookimpl

    while not os.path.exists({flag!r}):
        time.sleep(0.05)

    @hookimpl
    def temper_profiles():
        return [WorkloadProfile("late", (ThreadGroup("rest"),))]
"""


def test_a_plugin_that_could_not_be_imported_in_time_is_imported_later(
    install, tmp_path, monkeypatch, steady
):
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.05)
    flag = tmp_path / "the-disk-answers"
    install("late", LATE_TO_LOAD.format(flag=str(flag)))
    install("steady", steady.format(name="steady"))
    allowed = PluginHostSettings(deadline_s=1.0, allow=("late", "steady"))
    with capture_logs():
        host = load_host(Settings(plugin_host=allowed))
        at_start = gathered(host)
        flag.touch()
        until_it_returns(host)

    assert (at_start, gathered(host, again=True)) == ([], ["late"])
    assert state_of(host, "late").hooks == ("temper_profiles",)


def test_the_profiles_of_a_plugin_that_returns_are_in_the_catalogue(host, tmp_path):
    slow = SlowDisk()
    host.add(slow, "slow")
    with capture_logs():
        watch = ProfileWatch(Settings(profiles=ProfileSettings(directory=str(tmp_path))), host)
        before = watch.catalogue.profiles
        slow.is_quick.set()
        until_it_returns(host)
        watch.ask_again()
        has_changed = watch.look()

    assert (before, has_changed) == ((), True)
    assert [loaded.profile.id for loaded in watch.catalogue.profiles] == ["from-a-slow-disk"]
