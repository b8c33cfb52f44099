import time

import pytest

from bench.failures.watch import Change, SchedulerWatch, Timeline, stock_spans

ENDED_S = 100.0


def change(at_s, is_engine, attaches=1):
    return Change(at_s, is_engine, attaches)


@pytest.fixture
def sched_ext(tmp_path):
    """The kernel's directory, to be written by :func:`be`."""
    be(tmp_path, "enabled", 1)
    return tmp_path


def be(folder, state, attaches):
    put(folder / "state", state)
    put(folder / "enable_seq", attaches)


def put(file, value):
    """Replace the file at once, as a reader never sees an empty one in the kernel's directory."""
    new = file.with_suffix(".new")
    new.write_text(f"{value}\n")
    new.replace(file)


def wait_for(watch, count):
    until = time.monotonic() + 10
    while len(watch.changes) < count:
        assert time.monotonic() < until
        time.sleep(0.001)


def test_changes_of_the_kernels_scheduler_are_seen(sched_ext):
    with SchedulerWatch(sched_ext) as watch:
        be(sched_ext, "disabled", 1)
        wait_for(watch, 2)
        put(sched_ext / "enable_seq", 2)
        wait_for(watch, 3)
        put(sched_ext / "state", "enabled")
        wait_for(watch, 4)

    seen = [(each.is_engine, each.attaches) for each in watch.changes]
    assert seen == [(True, 1), (False, 1), (False, 2), (True, 2)]


def test_times_are_those_since_the_failure():
    changes = [change(0, True), change(12, False), change(30, True, 2)]

    timeline = Timeline.of(changes, struck_s=10, ended_s=ENDED_S)

    assert timeline == Timeline(2.0, 20.0, 18.0, 1)


def test_an_engine_that_stays_has_no_time_to_the_stock_scheduler():
    timeline = Timeline.of([change(0, True)], struck_s=10, ended_s=ENDED_S)

    assert timeline == Timeline(None, None, 0.0, 0)


def test_an_engine_that_does_not_come_back_has_no_time_back():
    changes = [change(0, True), change(12, False)]

    timeline = Timeline.of(changes, struck_s=10, ended_s=ENDED_S)

    assert timeline == Timeline(2.0, None, 88.0, 0)


def test_two_times_of_the_stock_scheduler_are_summed_up_to_the_last_attach():
    changes = [change(0, True), change(12, False), change(13, True, 2), change(14, False, 2)]

    timeline = Timeline.of([*changes, change(20, True, 3)], struck_s=10, ended_s=ENDED_S)

    assert timeline == Timeline(2.0, 10.0, 7.0, 2)


def test_a_count_that_changes_on_the_stock_scheduler_ends_no_span():
    changes = [change(0, True), change(5, False), change(7, False, 2), change(9, True, 2)]

    assert stock_spans(changes, ENDED_S) == [(5, 9)]
