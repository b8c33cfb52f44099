import math
import threading
import time
from contextlib import suppress

import attrs
import pytest
from structlog.testing import capture_logs

from temper_core import (
    InputError,
    MachineError,
    PluginError,
    Pod,
    PodSource,
    Staleness,
    hookimpl,
)
from temper_core.node import builtin_plugin
from temper_core.node.pod_watch import (
    LOOKS_AFTER_CHANGE,
    QUIET_S,
    SHORTEST_REST_S,
    PodWatch,
    open_pod_source,
)
from temper_core.plugin_host import PluginHost
from temper_core.records.contributions import PodSourceContext
from temper_core.records.executions import Execution, ExecutionNews
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import make_machine


class Scripted:
    """A pod source that gives, or raises, one answer after the other."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.is_closed = False

    def pods(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.is_closed = True


class ScriptedPlugin:
    def __init__(self, source):
        self.source = source

    @hookimpl
    def temper_pod_sources(self):
        return [PodSource("scripted", lambda _context: self.source)]


def context():
    return PodSourceContext(Settings().pods, (), make_machine())


@pytest.fixture
def host():
    """A host of plugins; the folder's own fixture of that name is a made-up machine."""
    return PluginHost()


@pytest.fixture
def watch_of(host):
    def build(*answers):
        source = Scripted(answers)
        host.add(ScriptedPlugin(source), "scripted")
        return open_pod_source(host, "scripted", context()), source

    return build


ONE, TWO = Pod("1", "shop", "a"), Pod("2", "shop", "b")


def test_an_unchanged_pod_stays_the_same_object_and_a_changed_one_is_replaced(watch_of):
    """Plans refer to pods for as long as they are in force."""
    changed = attrs.evolve(TWO, priority=7)
    watch, _ = watch_of([ONE, TWO], [ONE, TWO], [ONE, changed])
    watch.look()
    one, two = watch.pods
    assert not watch.look()
    assert watch.pods[0] is one
    assert watch.pods[1] is two
    assert watch.look()
    assert watch.pods[0] is one
    assert watch.pods[1] == changed


def test_the_order_in_which_pods_come_is_no_change(watch_of):
    watch, _ = watch_of([ONE, TWO], [TWO, ONE], [TWO])

    assert [watch.look(), watch.look(), watch.look()] == [True, False, True]
    assert watch.pods == (TWO,)


@pytest.mark.parametrize("failure", [MachineError("API away"), ZeroDivisionError()])
def test_a_source_that_fails_leaves_the_last_pods_in_force_and_says_so(watch_of, failure):
    watch, _ = watch_of([ONE], failure, [ONE, TWO])

    watch.look()
    assert not watch.look()

    assert watch.pods == (ONE,)
    assert "pods are 0 s old" in watch.defect
    assert watch.look()
    assert watch.defect == ""


def test_what_a_source_fails_with_is_shortened(watch_of):
    watch, _ = watch_of([ONE], MachineError("x" * 5_000))

    watch.look()
    watch.look()

    assert len(watch.defect) < 600


class GoesByWhatItKnew(Scripted):
    staleness = None

    def stale(self):
        return self.staleness


def test_why_an_answer_is_old_is_shortened(host):
    source = GoesByWhatItKnew([[ONE], [ONE]])
    source.staleness = Staleness(40.0, "x" * 100_000)
    host.add(ScriptedPlugin(source), "scripted")
    watch = open_pod_source(host, "scripted", context())

    watch.look()

    assert len(watch.defect) < 600


def test_a_source_may_answer_and_say_that_its_answer_is_old(host):
    source = GoesByWhatItKnew([[ONE], [ONE, TWO], [ONE, TWO]])
    host.add(ScriptedPlugin(source), "scripted")
    watch = open_pod_source(host, "scripted", context())
    watch.look()

    source.staleness = Staleness(40.0, "nobody answers")
    has_changed = watch.look()
    told = (watch.pods, watch.defect, round(watch.age_s))
    source.staleness = None
    watch.look()

    assert has_changed
    assert told == ((ONE, TWO), "pods are 40 s old: nobody answers", 40)
    assert (watch.defect, round(watch.age_s)) == ("", 0)


class LooksAgain(Scripted):
    """A source that asks for its next look, and notes what it is told of executions."""

    wish_s = 7.0
    told = ()

    def again_in_s(self):
        return self.wish_s

    def executed(self, news):
        self.told = (*self.told, news)
        self.wish_s = 0.0

    def fileno(self):
        return 99


@pytest.fixture
def looks_again(host):
    source = LooksAgain([[ONE]] * 9)
    host.add(ScriptedPlugin(source), "scripted")
    watch = open_pod_source(host, "scripted", context())
    for _ in range(LOOKS_AFTER_CHANGE + 1):
        watch.look()
    return watch, source


def test_a_source_that_signals_its_changes_may_ask_for_its_next_look(looks_again):
    watch, source = looks_again
    at_its_wish = watch.rest_s(2.0)
    source.wish_s = 0.0
    watch.look()
    at_once = watch.rest_s(2.0)
    source.wish_s = 1e9
    watch.look()

    assert (at_its_wish, at_once, watch.rest_s(2.0)) == (7.0, SHORTEST_REST_S, QUIET_S)


def test_executions_are_told_to_the_source_which_then_asks_for_a_look(looks_again):
    watch, source = looks_again
    news = ExecutionNews((Execution(20, 9),), is_heard=True)

    again_in_s = watch.executed(news)

    assert (again_in_s, source.told) == (0.0, (news,))


def test_a_source_that_does_not_ask_for_executions_is_not_told(watch_of):
    watch, _ = watch_of([ONE])
    watch.look()

    assert watch.executed(ExecutionNews()) == math.inf


def test_a_source_that_fails_when_it_is_told_of_executions_keeps_its_pods(looks_again, host):
    watch, source = looks_again
    source.executed = lambda _news: 1 / 0

    with capture_logs():
        for _ in range(9):
            watch.executed(ExecutionNews())
        watch.look()

    assert watch.pods == (ONE,)
    assert watch.defect == ""
    assert host.failures["scripted"] == 3


def test_something_that_is_no_pod_is_the_plugins_failure(watch_of, host):
    watch, _ = watch_of([ONE, "pod"])

    assert not watch.look()

    assert host.failures["scripted"] == 1
    assert "which is no Pod" in watch.defect


def test_a_source_that_does_not_exist_is_told_with_those_that_do(host):
    host.add(builtin_plugin, "core")

    with pytest.raises(InputError, match=r"'kubelet'; there are: file, local"):
        open_pod_source(host, "kubelet", context())


def test_closing_reaches_the_source(watch_of):
    watch, source = watch_of()

    watch.close()

    assert source.is_closed


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_source_that_hung_once_is_asked_again_after_a_while():
    answers = ["hang", [ONE]]

    class Hanging:
        def pods(self):
            answer = answers.pop(0)
            if answer == "hang":
                time.sleep(2)
            return answer

        def close(self):
            pass

    clock = Clock()
    host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.2)))
    host.add(ScriptedPlugin(Hanging()), "scripted")
    watch = PodWatch(host, "scripted", Hanging(), clock=clock)

    assert not watch.look()
    assert "did not return" in watch.defect
    clock.now = 5.0
    assert not watch.look()
    clock.now = 11.0
    watch.look()
    clock.now = 13.0

    assert watch.look()
    assert watch.pods == (ONE,)
    assert watch.defect == ""


def test_a_plugin_that_others_keep_busy_is_not_waited_for_beyond_the_deadline():
    host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=1.0)))
    host.add(ScriptedPlugin(None), "scripted")
    is_over = threading.Event()

    def keep_busy():
        while not is_over.is_set():
            with suppress(PluginError):
                host.call("scripted", time.sleep, 0.2)

    def ask_until_refused():
        while True:
            host.call("scripted", time.sleep, 0)

    others = [threading.Thread(target=keep_busy) for _ in range(12)]
    for other in others:
        other.start()
    try:
        with pytest.raises(PluginError, match="was in an earlier call"):
            ask_until_refused()
    finally:
        is_over.set()
        for other in others:
            other.join()

    assert host.states()[0].state == "active"
    assert host.failures["scripted"] == 0
