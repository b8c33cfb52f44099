import pytest

from temper_core import InputError, MachineError, Pod, PodSource, hookimpl
from temper_core.agent import builtin_plugin
from temper_core.agent.pod_watch import open_pod_source
from temper_core.records.contributions import PodSourceContext
from temper_core.settings.models import Settings
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
def watch_of(host):
    def build(*answers):
        source = Scripted(answers)
        host.add(ScriptedPlugin(source), "scripted")
        return open_pod_source(host, "scripted", context()), source

    return build


ONE, TWO = Pod("1", "shop", "a"), Pod("2", "shop", "b")


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
