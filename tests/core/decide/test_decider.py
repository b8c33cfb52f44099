import time

import pytest

from temper_core import Detection, Detector, hookimpl
from temper_core.decide.decider import Decider
from temper_core.plan import ProfileCatalogue
from temper_core.profiles.loading import load_catalogue
from temper_core.records.profiles import LoadedProfile, WorkloadProfile
from temper_core.records.thread_groups import ThreadGroup
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import make_machine, make_pod


class Detecting:
    """A plugin with one detector, that counts how often it is asked."""

    def __init__(self, name, confidence=0.5, profile="mysql-innodb", error=None, pause_s=0):
        self.name, self.confidence, self.profile, self.error = name, confidence, profile, error
        self.pause_s = pause_s
        self.asked = 0

    def detect(self, _pod):
        self.asked += 1
        time.sleep(self.pause_s)
        if self.error:
            raise self.error
        return Detection(self.profile, self.confidence, "because")

    @hookimpl
    def temper_detectors(self):
        return [Detector(self.name, self.detect)]


@pytest.fixture
def decider_with(host, tmp_path):
    def build(*plugins):
        for plugin in plugins:
            host.add(plugin, plugin.name)
        catalogue = load_catalogue(Settings(), host, tmp_path)
        return Decider(Settings(), make_machine(cores=8), host, catalogue)

    return build


def reason_of(decision):
    return decision.wanted.assignments[0].profile_reason


def test_a_pod_is_shown_to_a_detector_once_until_it_changes(decider_with):
    detecting = Detecting("one")
    decider = decider_with(detecting)

    decider.decide([make_pod(name="a")])
    decider.decide([make_pod(name="a")])
    assert detecting.asked == 1

    decider.decide([make_pod(name="a", priority=1_000_000)])
    assert detecting.asked == 2


def test_the_surest_detector_chooses_and_of_equals_the_first_by_name(decider_with):
    decider = decider_with(
        Detecting("zed", 0.9, "sure-z"), Detecting("abe", 0.9, "sure-a"), Detecting("low", 0.2)
    )

    assert "sure-a" in reason_of(decider.decide([make_pod(name="a")]))


def test_a_detector_that_raises_costs_only_its_own_opinion(decider_with, host):
    decider = decider_with(
        Detecting("bad", error=ZeroDivisionError()), Detecting("good", profile="found-it")
    )

    decision = decider.decide([make_pod(name="a")])

    assert "found-it" in reason_of(decision)
    assert host.failures["bad"] == 1


def test_detectors_share_one_deadline_and_the_next_call_goes_on(host, tmp_path):
    limits = Settings(plugin_host=PluginHostSettings(deadline_s=0.2))
    slow = Detecting("slow", pause_s=0.15)
    host.add(slow, "slow")
    decider = Decider(limits, make_machine(), host, load_catalogue(limits, host, tmp_path))
    pods = [make_pod(name=name) for name in "abcd"]

    decider.decide(pods)
    assert decider.is_unfinished
    assert slow.asked < len(pods)

    while decider.is_unfinished:
        decider.decide(pods)
    assert slow.asked == len(pods)


def test_another_catalogue_is_decided_by_and_detectors_are_not_asked_again(decider_with):
    detecting = Detecting("one", profile="search")
    decider = decider_with(detecting)
    without = reason_of(decider.decide([make_pod(name="a")]))
    search = WorkloadProfile("search", (ThreadGroup("rest"),))

    decider.follow(ProfileCatalogue((LoadedProfile(search, "search.toml"),)))
    is_to_do = decider.is_unfinished
    decision = decider.decide([make_pod(name="a")])

    assert "there is no such profile" in without
    assert decision.wanted.assignments[0].profile.profile == search
    assert (is_to_do, decider.is_unfinished) == (True, False)
    assert detecting.asked == 1


def test_detectors_that_come_later_are_gathered_and_asked(decider_with, host):
    late = Detecting("late")
    decider = decider_with()
    before = decider.decide([make_pod(name="a")])
    host.add(late, "late")

    decider.ask_again()
    is_unfinished = decider.is_unfinished
    after = decider.decide([make_pod(name="a")])

    assert (is_unfinished, late.asked) == (True, 1)
    assert "because" not in reason_of(before)
    assert "because" in reason_of(after)
