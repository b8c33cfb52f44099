"""Every hostility at every method of an instrument, and at the methods of its context."""

import threading
import time

import pytest
from structlog.testing import capture_logs

from temper_core import (
    Check,
    CheckState,
    Endpoint,
    EventKind,
    InputError,
    Instrument,
    OpenInstrument,
    hookimpl,
)
from temper_core.events.event_log import EventLog
from temper_core.instruments.context import AgentParts
from temper_core.instruments.helper_processes import HelperProcesses
from temper_core.instruments.instruments import METHODS, Instruments
from temper_core.instruments.lookup import PlanLookup
from temper_core.instruments.upkeep import StateDirectories
from temper_core.plugin_host import PluginHost
from temper_core.profiles.trials import TrialBook
from temper_core.records.restored import Restored
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import make_machine, make_snapshot
from tests.core.plugin_host import hostility
from tests.core.plugin_host.hostility import ERRORS, TEXTS, exits, sleeps

pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*gc_callback:pytest.PytestUnraisableExceptionWarning"
)

ANSWERS = {
    "section": lambda it: {it: it, "odd": [it]},
    "defects": lambda it: [it],
    "endpoints": lambda it: [Endpoint("odd", "GET", "/odd", it, print, parameters={it: it})],
    "checks": lambda it: [Check(it, CheckState.OK, it, it)],
    "events": lambda it: [EventKind(it, it)],
}


class Doors:
    """Safe mode as the agent has it, and the function that waits for a restoration."""

    def __init__(self, requests):
        self.request, self.release = requests.add, requests.withdraw
        self.waiting = []

    def restore(self, name, reason, done):
        self.request(name, reason)
        self.waiting.append(done)


@pytest.fixture
def requests(tmp_path):
    return SafeModeRequests(tmp_path / "file", tmp_path / "state.json")


@pytest.fixture
def doors(requests):
    return Doors(requests)


@pytest.fixture
def opened(tmp_path, doors):
    """Open a hostile instrument beside one that is well; return both and the host."""
    made = []

    def build(methods, well=None):
        host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.5)))
        for name, own in (("hostile", methods), ("well", well or {"section": lambda *_: {"a": 1}})):
            kind = type("Odd", (OpenInstrument,), {"__init__": _keep_context, **own})
            host.add(_plugin(Instrument(name, kind)), name)
        parts = AgentParts(
            node="node-1",
            machine=make_machine(),
            lookup=PlanLookup(lambda: None),
            safe_mode=doors,
            helpers=HelperProcesses(),
            trials=TrialBook(),
            recorder=EventLog(),
            state=StateDirectories(tmp_path).of,
        )
        instruments = Instruments(host, host.gather("temper_instruments", Instrument), parts)
        made.append(instruments)
        instruments.open()
        return instruments, host

    yield build
    for instruments in made:
        instruments.close()


CONTEXTS = []


def _keep_context(_, context):
    CONTEXTS.append(context)


def _plugin(instrument):
    plugin = type("Plugin", (), {})()
    plugin.temper_instruments = hookimpl(lambda: [instrument])
    return plugin


@pytest.fixture(autouse=True)
def _nothing_of_it_runs_elsewhere():
    hostility.OUTSIDE.clear()
    CONTEXTS.clear()
    yield
    assert hostility.OUTSIDE == []


def turn(instruments):
    """Do what a turn of the agent's loop and its server do with instruments."""
    snapshot = make_snapshot()
    instruments.tell(snapshot)
    seen = instruments.with_sections(snapshot)
    for _, check in instruments.checks():
        assert hash((check.name, check.detail, check.remedy)) is not None
    for _, endpoint in instruments.endpoints():
        assert endpoint.summary in {*endpoint.parameters}
    assert all(type(line) is str for line in (*seen.defects, *instruments.defects))
    return seen


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("method", ANSWERS)
def test_a_text_of_a_method_becomes_plain_or_sets_it_aside(opened, method, kind):
    with capture_logs():
        instruments, _ = opened({method: lambda *_: ANSWERS[method](TEXTS[kind]())})

        assert turn(instruments).sections["well"].content == {"a": 1}


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("method", METHODS)
def test_an_exception_of_a_method_leaves_the_others_alone(opened, method, kind):
    def raises(*_):
        raise ERRORS[kind]()  # noqa: RSE102 - a function

    with capture_logs():
        instruments, _ = opened({method: raises})

        assert turn(instruments).sections["well"].content == {"a": 1}


@pytest.mark.parametrize("misdeed", [sleeps, exits])
def test_attributes_of_an_instrument_are_read_in_its_own_thread(opened, misdeed):
    def attribute(self, name):
        return misdeed() if name in METHODS else object.__getattribute__(self, name)

    with capture_logs():
        instruments, host = opened({"__getattribute__": attribute, "tell": print})

        assert "well" in turn(instruments).sections
    assert host.failures["hostile"] > 0


TABLES = {
    "pressure": lambda it: it.pressure,
    "pressure_events": lambda it: it.pressure_events,
    "sections": lambda it: it.sections,
    "overhead": lambda it: it.overhead.cpu_ratio,
    "costs": lambda it: it.overhead.instruments,
    "steering": lambda it: it.steering.by_hook,
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_section_that_changes_the_snapshot_is_set_aside_and_the_others_see_no_change(
    opened, table
):
    def section(_, snapshot):
        table(snapshot)["mean"] = 0.5
        return {"a": 2}

    with capture_logs():
        instruments, host = opened({"section": section})
        seen = turn(instruments)

    assert table(seen).keys() <= {"well"}
    assert "hostile" not in seen.sections
    assert host.failures["hostile"] == 1


def test_slow_methods_have_one_bound_in_a_look_and_the_slowest_is_set_aside(opened):
    """Each of them is within its deadline of 0.5 s. Together they have 1 s."""
    calls = []

    def slow(method, seconds):
        def wait(*_):
            calls.append(method)
            time.sleep(seconds)

        return wait

    methods = {name: slow(name, 0.4) for name in ("section", "tell")} | {"defects": slow("d", 0.45)}
    with capture_logs():
        instruments, host = opened(methods, well=methods)
        for _ in range(3):
            turn(instruments)

    assert len(calls) < 3 * 6
    assert host.why_lost("hostile", "instrument hostile, defects") or host.why_lost(
        "well", "instrument well, defects"
    )
    (state, *_) = [state for state in host.states() if state.lost]
    assert "s that all plugins have in a look" in state.lost[0]


@pytest.mark.parametrize("kind", TEXTS)
def test_a_reason_for_safe_mode_holds_no_lock_of_the_agent(opened, requests, kind):
    opened({})
    asking = threading.Thread(
        target=CONTEXTS[0].request_safe_mode, args=(TEXTS[kind](),), name="plugin-hostile"
    )

    with capture_logs():
        asking.start()
        asking.join(timeout=5)

    assert not asking.is_alive()
    assert type(requests.active()["hostile"].reason) is str


def test_a_request_for_safe_mode_counts_without_a_text(opened, requests):
    opened({})

    with capture_logs():
        CONTEXTS[0].request_safe_mode(None)

    assert requests.active()["hostile"].reason == "its reason is no text"


def test_an_event_that_is_no_text_is_refused(opened):
    opened({})

    with pytest.raises(InputError, match="an event is recorded by texts: int is no text"):
        CONTEXTS[0].record("odd", 7)


@pytest.mark.parametrize("misdeed", [sleeps, exits])
def test_a_function_that_waits_for_a_restoration_is_called_under_guard(opened, doors, misdeed):
    with capture_logs():
        _, host = opened({})
        CONTEXTS[0].restore("odd", misdeed)

        doors.waiting[0](Restored(removed=(), left=()))

    assert host.failures["hostile"] == 1
