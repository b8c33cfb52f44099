import pytest
from structlog.testing import capture_logs

from temper_core import Check, CheckState, Instrument, MachineError, OpenInstrument, hookimpl
from temper_core.events.event_log import EventLog
from temper_core.instruments.context import AgentParts
from temper_core.instruments.helper_processes import HelperProcesses
from temper_core.instruments.instruments import Instruments
from temper_core.instruments.lookup import PlanLookup
from temper_core.instruments.upkeep import StateDirectories
from temper_core.profiles.trials import TrialBook
from temper_core.records.snapshots import Section
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.testing import make_machine, make_snapshot


class Listener(OpenInstrument):
    """An instrument that keeps what it is told, or fails at it."""

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
        self._instrument = Instrument(name, opening)

    @hookimpl
    def temper_instruments(self):
        return [self._instrument]


@pytest.fixture
def requests(tmp_path):
    return SafeModeRequests(tmp_path / "file", tmp_path / "state.json")


class Requests:
    """Safe mode asked for by name; nothing is restored."""

    def __init__(self, requests):
        self.request, self.release = requests.add, requests.withdraw
        self.is_requested = lambda: bool(requests.active())
        self._active = requests.active

    def reason(self, name):
        request = self._active().get(name)
        return request.reason if request else ""


def parts_of(requests, folder):
    return AgentParts(
        node="node-1",
        machine=make_machine(),
        lookup=PlanLookup(lambda: None),
        safe_mode=Requests(requests),
        helpers=HelperProcesses(),
        trials=TrialBook(),
        recorder=EventLog(),
        state=StateDirectories(folder).of,
    )


@pytest.fixture
def instruments_of(host, requests, tmp_path):
    """Open instruments by their names; returns them with what was opened."""

    def build(**openings):
        opened = {}

        def keep(name, make):
            def opening(context):
                opened[name] = make(context)
                return opened[name]

            return opening

        for name, make in openings.items():
            host.add(Plugin(name, keep(name, make)), f"plugin-{name}")
        found = host.gather("temper_instruments", Instrument)
        instruments = Instruments(host, found, parts_of(requests, tmp_path))
        instruments.open()
        return instruments, opened

    return build


def test_each_is_told_of_every_look_and_closed(instruments_of):
    instruments, opened = instruments_of(one=Listener, two=Listener)
    snapshot = make_snapshot()

    instruments.tell(snapshot)
    instruments.close()

    assert [(each.told, each.is_closed) for each in opened.values()] == [([snapshot], True)] * 2


def test_what_it_asks_for_stands_in_its_own_name_until_it_is_released(instruments_of, requests):
    _, opened = instruments_of(cluster=Listener)
    context = opened["cluster"].context

    context.request_safe_mode("the operator wants it")
    standing = {name: each.reason for name, each in requests.active().items()}
    own = context.safe_mode_reason()
    context.release_safe_mode()

    assert context.node == "node-1"
    assert standing == {"cluster": "the operator wants it"}
    assert (own, context.safe_mode_reason()) == ("the operator wants it", "")
    assert requests.active() == {}


def test_it_knows_of_every_request_for_safe_mode(instruments_of, requests):
    _, opened = instruments_of(limits=Listener)
    context = opened["limits"].context
    before = context.is_safe_mode_requested()

    requests.add("cli", "an incident")

    assert (before, context.is_safe_mode_requested()) == (False, True)


def test_one_that_fails_is_set_aside_alone_and_still_closed_is_the_other(instruments_of, host):
    failing = lambda context: Listener(context, ZeroDivisionError())  # noqa: E731 - as short as it is
    instruments, opened = instruments_of(bad=failing, good=Listener)

    for _ in range(4):
        instruments.tell(make_snapshot())
    instruments.close()

    assert len(opened["good"].told) == 4
    assert opened["good"].is_closed
    (state,) = [state for state in host.states() if state.name == "plugin-bad"]
    (lost,) = state.lost
    assert lost.startswith("instrument bad, tell: ZeroDivisionError (test_instruments.py:")


class Holder(Listener):
    """An instrument that fails when it is told, and holds something that it has to let go."""

    def __init__(self, context, let_go):
        super().__init__(context, ZeroDivisionError())
        self.calls = 0
        self._let_go = let_go

    def let_go(self):
        self.calls += 1
        self._let_go(self.calls)

    def section(self, _snapshot):
        return {"let_go": self.calls}


def test_one_whose_tell_is_set_aside_lets_go_once_and_the_rest_of_it_goes_on(instruments_of):
    instruments, opened = instruments_of(limits=lambda context: Holder(context, bool))
    calls = []

    for _ in range(5):
        instruments.tell(make_snapshot())
        calls.append(opened["limits"].calls)
    section = instruments.with_sections(make_snapshot()).sections["limits"].content
    instruments.close()

    assert calls == [0, 0, 1, 1, 1]
    assert section == {"let_go": 1}
    assert opened["limits"].is_closed


def test_one_that_fails_to_let_go_is_asked_again_at_the_next_look(instruments_of):
    def fail_at_first(calls):
        if calls == 1:
            raise MachineError("not yet")

    instruments, opened = instruments_of(limits=lambda context: Holder(context, fail_at_first))

    for _ in range(6):
        instruments.tell(make_snapshot())

    assert opened["limits"].calls == 2


def test_one_that_cannot_be_opened_is_named_and_the_others_go_on(instruments_of):
    def refusing(_context):
        raise MachineError("there is no cluster")

    with capture_logs() as logs:
        instruments, opened = instruments_of(bad=refusing, good=Listener)
    instruments.tell(make_snapshot())

    assert instruments.defects == ("instrument bad: there is no cluster",)
    assert [entry["event"] for entry in logs] == ["instrument_not_opened"]
    assert len(opened["good"].told) == 1


class Teller(Listener):
    """An instrument that adds *content* to the snapshot, and checks what *check* does."""

    def __init__(self, context, content, check=list):
        super().__init__(context)
        self._content, self._check = content, check

    def section(self, _snapshot):
        return self._content

    def checks(self):
        return self._check()


def teller(*arguments):
    return lambda context: Teller(context, *arguments)


def test_each_adds_its_section_to_the_snapshot(instruments_of):
    instruments, _ = instruments_of(one=teller({"a": float("nan")}), none=teller(None))

    snapshot = instruments.with_sections(make_snapshot())

    assert snapshot.sections == {"one": Section(1, {"a": None})}
    assert snapshot.defects == ()


def test_a_section_that_is_too_large_is_dropped_and_named_and_the_others_stay(instruments_of):
    instruments, _ = instruments_of(large=teller({"a": "x" * 262_144}), small=teller({"b": 1}))

    snapshot = instruments.with_sections(make_snapshot(defects=("something",)))

    assert set(snapshot.sections) == {"small"}
    assert snapshot.defects == (
        "something",
        "instrument large: its section is larger than 262144 bytes as JSON, and dropped",
    )


def test_a_section_that_has_not_changed_is_the_same_object_and_one_that_has_is_new(instruments_of):
    content = {"edges": [{"waker": 1}]}
    instruments, _ = instruments_of(one=teller(content))

    first, same = (instruments.with_sections(make_snapshot()).sections for _ in range(2))
    content["edges"].append({"waker": 2})
    changed = instruments.with_sections(make_snapshot()).sections

    assert same["one"].content is first["one"].content
    assert first["one"].content == {"edges": [{"waker": 1}]}
    assert changed["one"].content == content


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("inf"), None),
        (10**400, None),
        ({3, 4}, [3, 4]),
        ((1, "a"), [1, "a"]),
        (b"x", "b'x'"),
        ({1: None}, {"1": None}),
    ],
)
def test_what_json_cannot_say_is_null_or_text_in_a_section(instruments_of, value, plain):
    instruments, _ = instruments_of(one=teller({"a": value}))

    snapshot = instruments.with_sections(make_snapshot())

    assert snapshot.sections["one"].content == {"a": plain}


@pytest.mark.parametrize("content", [7, [1], "text"])
def test_a_section_that_is_no_mapping_is_the_plugins_failure(instruments_of, host, content):
    instruments, _ = instruments_of(odd=teller(content))

    assert instruments.with_sections(make_snapshot()).sections == {}
    assert host.failures["plugin-odd"] == 1


class Hindered(Listener):
    """An instrument that is kept from its work by *reasons*."""

    def __init__(self, context, reasons):
        super().__init__(context)
        self._reasons = reasons

    def defects(self):
        return iter(self._reasons)


def hindered(*reasons):
    return lambda context: Hindered(context, reasons)


def test_what_keeps_it_from_its_work_is_a_defect_with_its_name(instruments_of):
    instruments, _ = instruments_of(one=hindered("no CAP_BPF;\n run as root"), well=hindered())

    snapshot = instruments.with_sections(make_snapshot(defects=("something",)))

    assert snapshot.defects == ("something", "instrument one: no CAP_BPF; run as root")


def test_defects_are_bounded_and_one_that_is_no_text_costs_its_own_only(instruments_of, host):
    instruments, _ = instruments_of(many=hindered(*["x" * 900] * 20), odd=hindered("a", 7))

    snapshot = instruments.with_sections(make_snapshot())

    assert snapshot.defects == (f"instrument many: {'x' * 500}",) * 8
    assert host.failures["plugin-odd"] == 1


def test_checks_come_with_their_plugin_and_what_cannot_be_asked_is_unknown(instruments_of):
    db = Check("db", CheckState.FAILED, "no answer", "start it")
    instruments, _ = instruments_of(
        shop=teller(None, lambda: [db]),
        bad=teller(None, lambda: 1 / 0),
        odd=teller(None, lambda: [7]),
    )

    checks = dict(instruments.checks())

    assert checks["plugin-shop"] == db
    assert checks["plugin-bad"].state is CheckState.UNKNOWN
    assert checks["plugin-bad"].detail.startswith("failed: ZeroDivisionError: division by zero (")
    assert checks["plugin-odd"].state is CheckState.UNKNOWN
