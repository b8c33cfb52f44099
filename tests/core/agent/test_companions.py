import pytest
from structlog.testing import capture_logs

from temper_core import Companion, MachineError, hookimpl
from temper_core.agent.companions import Companions
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.testing import make_snapshot


class Listener:
    """A companion that keeps what it is told, or fails at it."""

    def __init__(self, context, problem=None):
        self.context = context
        self.told = []
        self.is_closed = False
        self._problem = problem

    def tell(self, snapshot):
        if self._problem:
            raise self._problem
        self.told.append(snapshot)

    def close(self):
        self.is_closed = True


class Plugin:
    def __init__(self, name, opening):
        self._companion = Companion(name, opening)

    @hookimpl
    def temper_companions(self):
        return [self._companion]


@pytest.fixture
def requests(tmp_path):
    return SafeModeRequests(tmp_path / "file", tmp_path / "state.json")


@pytest.fixture
def companions_of(host, requests):
    """Open companions by their names; returns them with what was opened."""

    def build(**openings):
        opened = {}

        def keep(name, make):
            def opening(context):
                opened[name] = make(context)
                return opened[name]

            return opening

        for name, make in openings.items():
            host.add(Plugin(name, keep(name, make)), f"plugin-{name}")
        found = host.gather("temper_companions", Companion)
        companions = Companions(host, found, requests, "node-1")
        companions.open()
        return companions, opened

    return build


def test_each_is_told_of_every_look_and_closed(companions_of):
    companions, opened = companions_of(one=Listener, two=Listener)
    snapshot = make_snapshot()

    companions.tell(snapshot)
    companions.close()

    assert [(each.told, each.is_closed) for each in opened.values()] == [([snapshot], True)] * 2


def test_what_it_asks_for_stands_in_its_own_name_until_it_is_released(companions_of, requests):
    _, opened = companions_of(cluster=Listener)
    context = opened["cluster"].context

    context.request_safe_mode("the operator wants it")
    standing = {name: each.reason for name, each in requests.active().items()}
    context.release_safe_mode()

    assert context.node == "node-1"
    assert standing == {"cluster": "the operator wants it"}
    assert requests.active() == {}


def test_one_that_fails_is_set_aside_alone_and_still_closed_is_the_other(companions_of, host):
    failing = lambda context: Listener(context, ZeroDivisionError())  # noqa: E731 - as short as it is
    companions, opened = companions_of(bad=failing, good=Listener)

    for _ in range(4):
        companions.tell(make_snapshot())
    companions.close()

    assert len(opened["good"].told) == 4
    assert opened["good"].is_closed
    (state,) = [state for state in host.states() if state.name == "plugin-bad"]
    assert state.lost == ("companion bad: ZeroDivisionError",)


def test_one_that_cannot_be_opened_is_named_and_the_others_go_on(companions_of):
    def refusing(_context):
        raise MachineError("there is no cluster")

    with capture_logs() as logs:
        companions, opened = companions_of(bad=refusing, good=Listener)
    companions.tell(make_snapshot())

    assert companions.defects == ("companion bad: there is no cluster",)
    assert [entry["event"] for entry in logs] == ["companion_not_opened"]
    assert len(opened["good"].told) == 1
