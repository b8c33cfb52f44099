"""The parts of the flight recorder on their own: its cost, its names, its note."""

import numpy as np

from temper_plugin_tracer.capture import flight_names
from temper_plugin_tracer.capture.flight_cost import OUTSIDE_NS, OVER_S, CostMeter, KernelTally
from temper_plugin_tracer.capture.flight_names import LastNames
from temper_plugin_tracer.capture.flight_status import FlightStatus, read_status, write_status
from temper_plugin_tracer.capture.kernel_layout import EXITED, LIVES, NAME, RENAMED

SECOND = 1_000_000_000


def names(*rows):
    """Return names by moment in seconds, tid, name and kind."""
    made = np.zeros(len(rows), NAME)
    for place, (at, tid, comm, kind) in enumerate(rows):
        made[place]["ns"], made[place]["tid"] = at * SECOND, tid
        made[place]["comm"], made[place]["kind"] = comm, kind
    return made


def test_the_cost_of_all_events_is_extrapolated_from_the_timed_ones():
    tally = KernelTally(events=1000, passed=500, timed=10, timed_ns=1000)
    assert tally.seconds == (1000 * 100 + 1500 * OUTSIDE_NS) / 1e9
    assert KernelTally().seconds == 0


def test_the_budget_is_held_over_some_seconds():
    meter = CostMeter()
    meter.note(0.0, 10.0)
    meter.note(1.0, 11.0)
    assert meter.ratio == 1.0
    assert not meter.is_over(0.5)
    meter.note(OVER_S, 11.0)
    assert meter.is_over(1.0 / OVER_S - 0.01)
    assert not meter.is_over(1.0 / OVER_S + 0.01)
    meter.note(OVER_S + 1, 11.0)
    assert meter.ratio == 0.0


def test_the_last_name_of_each_thread_is_kept():
    kept = LastNames(10 * SECOND)
    kept.add(names((1, 7, b"old", LIVES), (2, 8, b"other", LIVES)), 2 * SECOND)
    kept.add(names((3, 7, b"new", RENAMED)), 3 * SECOND)
    last = kept.last(4 * SECOND)
    assert list(zip(last["tid"].tolist(), last["comm"].tolist(), strict=True)) == [
        (8, b"other"),
        (7, b"new"),
    ]


def test_threads_that_ended_long_ago_are_forgotten():
    kept = LastNames(10 * SECOND)
    kept.add(names((1, 7, b"a", EXITED), (15, 8, b"b", EXITED), (1, 9, b"c", LIVES)), 15 * SECOND)
    assert sorted(kept.last(20 * SECOND)["tid"].tolist()) == [8, 9]


def test_a_storm_of_threads_that_end_is_bounded(monkeypatch):
    monkeypatch.setattr(flight_names, "MOST_PENDING", 100)
    monkeypatch.setattr(flight_names, "MOST_ENDED", 50)
    kept = LastNames(10 * SECOND)
    for begin in range(0, 10_000, 100):
        kept.add(names(*((1, tid, b"x", EXITED) for tid in range(begin, begin + 100))), SECOND)
    assert kept.last(SECOND)["tid"].tolist() == list(range(9_950, 10_000))


def test_a_link_in_place_of_the_notes_partial_file_is_not_followed(tmp_path):
    target, capture = tmp_path / "target", "20261128-000000-abcd"
    target.write_text("kept")
    (tmp_path / f"{capture}.flight.partial").symlink_to(target)

    write_status(tmp_path, capture, FlightStatus(events=7))

    assert target.read_text() == "kept"
    assert read_status(tmp_path, capture)["events"] == 7


def test_the_note_is_read_back_and_a_damaged_one_is_none(tmp_path):
    write_status(tmp_path, "x", FlightStatus(events=3, cpu_ratio=0.5))
    assert read_status(tmp_path, "x")["events"] == 3
    (tmp_path / "x.flight").write_text("[" * 5000)
    assert read_status(tmp_path, "x") == {}
    assert read_status(tmp_path, "y") == {}
    write_status(tmp_path / "none", "x", FlightStatus())
