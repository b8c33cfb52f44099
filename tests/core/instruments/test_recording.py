"""Instruments that record events, and those that abuse that."""

import pytest
from structlog.testing import capture_logs

from temper_core import EventKind, InputError, Instrument, OpenInstrument, hookimpl
from temper_core.events.event_log import EventLog
from temper_core.events.lanes import BURST
from temper_core.instruments.context import AgentParts
from temper_core.instruments.helper_processes import HelperProcesses
from temper_core.instruments.instruments import Instruments
from temper_core.instruments.lookup import PlanLookup
from temper_core.instruments.upkeep import StateDirectories
from temper_core.profiles.trials import TrialBook
from temper_core.testing import make_machine

DONE = EventKind("trace_done", "A trace is done.")


class Recording(OpenInstrument):
    def __init__(self, context, kinds):
        self.context = context
        self._kinds = kinds

    def events(self):
        if isinstance(self._kinds, Exception):
            raise self._kinds
        return self._kinds


@pytest.fixture
def log():
    return EventLog()


@pytest.fixture
def open_with(host, log, tmp_path):
    """Open one instrument that declares the given kinds; return the instruments and its context."""

    def build(kinds, name="tracer"):
        opened = []

        class Plugin:
            @hookimpl
            def temper_instruments(self):
                def opening(context):
                    opened.append(Recording(context, kinds))
                    return opened[-1]

                return [Instrument(name, opening)]

        host.add(Plugin(), f"plugin-{name}")
        parts = AgentParts(
            node="node-1",
            machine=make_machine(),
            lookup=PlanLookup(lambda: None),
            safe_mode=None,
            helpers=HelperProcesses(),
            trials=TrialBook(),
            recorder=log,
            state=StateDirectories(tmp_path).of,
        )
        instruments = Instruments(host, host.gather("temper_instruments", Instrument), parts)
        instruments.open()
        return instruments, opened[-1].context

    return build


def test_an_instrument_records_what_it_declares_in_its_own_name(open_with, log):
    instruments, context = open_with([DONE])

    context.record("trace_done", "shop/web", "the window is full")

    [event] = log.after()
    assert (event.kind, event.subject, event.source) == ("trace_done", "shop/web", "tracer")
    assert instruments.defects == ()


def test_an_instrument_reads_the_events_of_the_whole_node(open_with, log):
    _, context = open_with([DONE])
    log.record("safe_mode_requested", "cli")
    [asked] = context.events_after()

    context.record("trace_done", "shop/web")

    [done] = context.events_after(asked.number)
    assert (asked.kind, asked.source) == ("safe_mode_requested", "agent")
    assert (done.kind, done.source) == ("trace_done", "tracer")


def test_an_instrument_cannot_change_the_events_of_the_node(open_with, log):
    _, context = open_with([DONE])
    log.record("safe_mode_requested", "cli")
    [event] = context.events_after()

    object.__setattr__(event, "kind", object())

    assert [kept.kind for kept in log.after()] == ["safe_mode_requested"]


@pytest.mark.parametrize("number", ["seven", None, [], float("nan"), float("inf")])
def test_events_that_follow_no_number_are_its_own_mistake(open_with, number):
    _, context = open_with([DONE])

    with pytest.raises(InputError, match="events follow a number"):
        context.events_after(number)


@pytest.mark.parametrize("kind", ["safe_mode_entered", "trace_begun", "", "trace_done\n"])
def test_what_it_does_not_declare_is_refused(open_with, log, kind):
    _, context = open_with([DONE])

    with pytest.raises(InputError, match="tracer declares no event kind"):
        context.record(kind)

    assert log.after() == ()


@pytest.mark.parametrize(
    "arguments",
    [(None,), (["trace_done"],), ("trace_done", 7), ("trace_done", "a", b"b"), ({}, {}, {})],
)
def test_wrong_types_are_its_own_mistake(open_with, log, arguments):
    _, context = open_with([DONE])

    with pytest.raises(InputError):
        context.record(*arguments)

    assert log.after() == ()


def test_a_flood_is_bounded_counted_and_hides_nothing_of_the_agents(open_with, log):
    _, context = open_with([DONE])
    log.record("safe_mode_requested", "cli")

    for _ in range(10_000):
        context.record("trace_done", "x" * 10_000, "\x00\x1b" * 10_000)
    log.record_dropped()

    events = log.after()
    flood = [event for event in events if event.source == "tracer"]
    assert events[0].kind == "safe_mode_requested"
    assert BURST <= len(flood) <= BURST + 50
    assert all(len(event.subject) <= 200 and event.reason == "" for event in flood)
    assert events[-1].kind == "events_dropped"
    assert events[-1].subject == "tracer"


def test_a_kind_of_the_agents_own_is_refused_and_is_a_defect(open_with, log):
    with capture_logs() as logs:
        instruments, context = open_with([DONE, EventKind("agent_stopped", "A lie.")])

    context.record("trace_done")

    assert instruments.defects == ("instrument tracer: agent_stopped is a kind of the agent's own",)
    assert [entry["event"] for entry in logs] == ["event_kinds_refused"]
    assert [kind.name for source, kind in log.kinds if source == "tracer"] == ["trace_done"]


@pytest.mark.parametrize("kinds", [ZeroDivisionError(), ["trace_done"], 7, [None]])
def test_one_whose_kinds_are_none_records_nothing_and_stays_open(open_with, log, kinds):
    instruments, context = open_with(kinds)

    with pytest.raises(InputError, match="it has none"):
        context.record("trace_done")

    instruments.close()
    assert log.after() == ()


def test_kinds_without_end_do_not_keep_the_agent_from_starting(open_with, log):
    def endless():
        number = 0
        while number < 1_000:
            number += 1
            yield EventKind(f"kind_{number}", "One of many.")

    _, context = open_with(endless())

    context.record("kind_1")
    assert len([source for source, _ in log.kinds if source == "tracer"]) == 32
