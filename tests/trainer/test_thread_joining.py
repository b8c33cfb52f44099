import platform

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_core import InputError, MachineError
from temper_core.records.machine import MachineShape
from temper_plugin_trainer.joining import MOST_ALIKE, table_threads
from temper_plugin_trainer.recording import drafted_table, recorded_table
from temper_plugin_trainer.sampling import SeenThread, ThreadCounters, ThreadSampler
from temper_plugin_trainer.thread_tables import parse_thread_table, thread_table_text

SEEN = SeenThread(
    comm="w-1",
    names=(),
    process="shop",
    title="shop --port 80",
    leader=False,
    container="",
    used=ThreadCounters(run_ns=2_000_000_000, delay_ns=1_000_000_000, runs=4_000),
    lived_s=10.0,
)
MACHINE = MachineShape.uniform(4, 2)
THREADS = st.lists(
    st.builds(
        SeenThread,
        comm=st.sampled_from(["w-1", "w-2"]),
        names=st.just(()),
        process=st.just("shop"),
        title=st.sampled_from(["shop 1", "shop 2"]),
        leader=st.just(False),
        container=st.just(""),
        used=st.builds(
            ThreadCounters, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 99)
        ),
        lived_s=st.floats(1, 10),
    ),
    min_size=1,
    max_size=2 * MOST_ALIKE,
)


class Nobody:
    def processes(self):
        return {}


def draft(**named):
    return drafted_table(MACHINE, **{"program": "shop", "version": "1", "command": "x", **named})


def test_rates_are_of_one_second_of_life():
    (row,) = table_threads([SEEN], seconds=20.0)

    assert (row.cpu_share, row.wait_share, row.wakeups_per_s) == (0.2, 0.1, 400.0)
    assert (row.run_us, row.lived_share) == (500.0, 0.5)


def test_long_lived_threads_have_a_row_each():
    rows = table_threads([SEEN] * 3, seconds=10.0)

    assert [row.count for row in rows] == [1, 1, 1]


def test_short_lived_threads_of_a_kind_share_a_row():
    short = evolve(SEEN, lived_s=1.0, title="shop --port 81")

    rows = table_threads([SEEN, short, evolve(short, comm="w-2"), short], seconds=10.0)

    assert [(row.comm, row.count) for row in rows] == [("w-1", 2), ("w-1", 1), ("w-2", 1)]


def test_a_crowd_of_one_kind_shares_a_row_that_has_all_names():
    crowd = [evolve(SEEN, names=(f"n-{number % 3}",)) for number in range(MOST_ALIKE + 1)]

    (row,) = table_threads(crowd, seconds=10.0)

    assert (row.count, row.names) == (MOST_ALIKE + 1, ("n-0", "n-1", "n-2"))


def test_leaders_and_containers_are_kinds_of_their_own():
    others = [evolve(SEEN, leader=True), evolve(SEEN, container="proxy")]

    rows = table_threads([evolve(each, lived_s=1.0) for each in (SEEN, *others)], seconds=10.0)

    assert len(rows) == 3


def test_a_thread_that_never_ran_has_no_length_of_run():
    (row,) = table_threads([evolve(SEEN, used=ThreadCounters())], seconds=10.0)

    assert (row.cpu_share, row.run_us, row.wakeups_per_s) == (0.0, 0.0, 0.0)


@given(THREADS)
def test_joining_loses_neither_threads_nor_their_cpu_time(threads):
    rows = table_threads(threads, seconds=10.0)

    used_s = sum(thread.used.run_ns for thread in threads) / 1e9
    assert sum(row.count for row in rows) == len(threads)
    assert 10.0 * sum(row.cpus_used for row in rows) == pytest.approx(used_s, rel=0.01, abs=0.01)


def test_the_busiest_row_comes_first():
    idle = evolve(SEEN, comm="idle", used=ThreadCounters())

    rows = table_threads([idle, SEEN], seconds=10.0)

    assert [row.comm for row in rows] == ["w-1", "idle"]


def test_the_kernel_is_told_without_who_built_it(monkeypatch):
    monkeypatch.setattr(platform, "release", lambda: "6.12.3-bob-at-shop+")

    assert draft().kernel == "6.12.3"


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ({"program": "My Shop"}, "program"),
        ({"version": ""}, "version"),
        ({"command": ""}, "command"),
    ],
)
def test_what_no_table_can_say_is_refused_before_anything_is_recorded(named, problem):
    with pytest.raises(InputError, match=problem):
        draft(**named)


def test_without_a_thread_there_is_no_table():
    sampler = ThreadSampler(Nobody())
    sampler.look()
    sampler.look()

    with pytest.raises(MachineError, match="nothing was recorded"):
        recorded_table(draft(), sampler)


def test_a_draft_says_what_it_is_made_on():
    machine = draft().machine

    assert (machine.cores, machine.threads_per_core, machine.architecture) == (4, 2, "x86_64")


@given(THREADS)
def test_whatever_was_seen_makes_a_table_that_can_be_read(threads):
    table = evolve(draft(), threads=table_threads(threads, seconds=10.0))

    assert parse_thread_table(thread_table_text(table), source="x") == table
