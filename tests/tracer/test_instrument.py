"""The instrument: what the agent asks it for, and what it answers."""

import json

import pytest
from attrs import evolve

import temper_plugin_tracer
from temper_core import (
    Blocking,
    DocumentError,
    Instrument,
    Observing,
    Party,
    Section,
    WaitHistogram,
    WakeEdge,
    WakeWindow,
    read_wake_window,
)
from temper_core.testing import MadeContext, assert_keeps_contract
from temper_plugin_tracer import temper_instruments
from temper_plugin_tracer.document import window_document
from temper_plugin_tracer.instrument import LARGEST_SECTION_BYTES, Tracer
from temper_plugin_tracer.wait_totals import WaitTotals
from tests.tracer.people import a_snapshot

WEB = Party(41, "nginx", "nginx", pod="shop/web", layer="high")
DB = Party(42, "ib_worker", "mysqld", pod="shop/db")
WINDOW = WakeWindow(
    at=1_700_000_000.125,
    length_s=0.25,
    every_s=20.0,
    switches_per_s=1e5,
    edges=(WakeEdge(WEB, DB, 12), WakeEdge(Party(0, ""), WEB, 1)),
    blockings=(Blocking(WEB, DB, 3, 0.0125),),
    waits=(WaitHistogram("node", (1, 2, 3), 0.004),),
    lost=2,
)


@pytest.fixture
def tracer(fake_watch):
    return Tracer(fake_watch, WaitTotals())


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_tracer)


def test_it_contributes_windows_whose_thread_is_off_until_they_are_asked_for():
    instrument, captures = temper_instruments({})
    assert captures.name == "trace"
    assert captures.state_limit_bytes >= 256 << 20
    opened = instrument.open(MadeContext())

    assert (instrument.name, type(instrument)) == ("tracer", Instrument)
    assert opened.section(a_snapshot()) is None
    assert list(opened.defects()) == []
    opened.close()


@pytest.mark.parametrize("settings", [{"edges": "yes"}, {"windows": 3}])
def test_settings_that_do_not_fit_are_refused(settings):
    with pytest.raises(DocumentError, match=r"\[plugins.tracer\]"):
        temper_instruments(settings)


def test_the_section_is_the_last_window_and_reads_back_as_it_was(tracer, fake_watch):
    fake_watch.window = WINDOW

    content = tracer.section(a_snapshot())

    assert content == window_document(WINDOW)
    assert read_wake_window(Section(1, json.loads(json.dumps(content)))) == WINDOW
    assert tracer.section(a_snapshot()) is content


def test_an_old_window_and_none_give_no_section(tracer, fake_watch):
    assert tracer.section(a_snapshot()) is None

    fake_watch.window = WINDOW
    slow = evolve(a_snapshot(), observing=Observing(period_s=200.0))
    assert tracer.section(slow) is None


def test_a_section_has_room_for_the_longest_names_with_fewer_edges(tracer, fake_watch):
    long = Party(1, "\ufffd" * 15, "\ufffd" * 15, pod=f"{'n' * 63}/{'p' * 253}", layer="l" * 60)
    edges = tuple(WakeEdge(long, long, 256 - n) for n in range(256))
    blockings = tuple(Blocking(long, long, 1, 128.0 - n) for n in range(128))
    fake_watch.window = evolve(WINDOW, edges=edges, blockings=blockings)

    content = tracer.section(a_snapshot())

    assert len(json.dumps(content)) <= LARGEST_SECTION_BYTES
    assert (content["edges"][0]["wakes"], content["blockings"][0]["waited_s"]) == (256, 128.0)
    assert 32 <= len(content["edges"]) < 256
    assert content["waits"] == window_document(WINDOW)["waits"]


def test_what_is_in_the_way_is_a_defect(tracer, fake_watch):
    fake_watch.reason = "no CAP_BPF"

    assert list(tracer.defects()) == ["wakes: no CAP_BPF"]


def test_the_watch_is_given_each_snapshot_and_closed_with_the_instrument(tracer, fake_watch):
    snapshot = a_snapshot()

    tracer.tell(snapshot)
    tracer.close()

    assert fake_watch.turned is snapshot
    assert fake_watch.wanted == ["closed"]


@pytest.mark.parametrize(
    "change",
    [
        {"at": "yesterday"},
        {"at": float("inf")},
        {"length_s": 0},
        {"length_s": True},
        {"lost": -1},
        {"edges": [{}]},
        {"edges": None},
        {"waits": [{"subject": 3, "counts": [], "total_s": 0.0}]},
        {"blockings": [{"waiter": 1, "runner": 2, "waits": 3, "waited_s": 4}]},
    ],
)
def test_a_section_that_cannot_be_read_is_no_window(change):
    content = {**window_document(WINDOW), **change}

    assert read_wake_window(Section(1, content)) is None


def test_no_section_and_one_of_another_version_are_no_window():
    assert read_wake_window(None) is None
    assert read_wake_window(Section(1, {})) is None
    assert read_wake_window(Section(2, window_document(WINDOW))) is None
