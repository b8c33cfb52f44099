"""Run-queue waits of a container: by rank and name family, in the history and in the reasons."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import Tier
from temper_core.records.snapshots import PodSample
from temper_core.testing import make_snapshot, make_thread
from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.advice.waits import run_queue
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.waits import MOST_GROUPS, GroupTime, Waits, WindowWaits
from temper_plugin_rightsizer.demand.window import WindowDemand, window_demands
from temper_plugin_rightsizer.store.packing import DamagedError, pack, unpack

SHARES = st.floats(0, 8).map(lambda share: round(share, 3))
WINDOWS = st.lists(
    st.builds(
        WindowWaits,
        st.lists(SHARES, max_size=4).map(tuple),
        st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(SHARES, SHARES), max_size=8),
    ),
    max_size=6,
)


def waiting(windows, seconds=10):
    waits = Waits()
    for each in windows:
        waits.add(each, seconds)
    return waits


@given(WINDOWS, WINDOWS)
def test_the_sum_of_two_intervals_has_the_waits_of_all_their_windows(ours, theirs):
    both = waiting(ours)
    both.merge(waiting(theirs))

    whole = waiting([*ours, *theirs])
    assert (both.seconds, both.ranked) == (whole.seconds, pytest.approx(whole.ranked))
    assert both.groups.keys() == whole.groups.keys()
    for name, time in both.groups.items():
        assert time.cpu_s == pytest.approx(whole.groups[name].cpu_s)
        assert time.waited_s == pytest.approx(whole.groups[name].waited_s)


def test_a_window_has_the_waits_of_the_busiest_threads_and_of_each_name_family():
    place = {"namespace": "shop", "pod": "web", "container": "app"}
    threads = [
        make_thread(comm, cpu_used=used, run_delay_ratio=delay, **place)
        for comm, used, delay in (
            ("io-1", 0.3, 0.2),
            ("io-2", 0.1, 0.5),
            ("main", 0.9, 0.05),
        )
    ]
    pod = PodSample("shop", "web", "uid", Tier.NORMAL, 3, 1.3)

    (demand,) = window_demands(make_snapshot(*threads, pods=(pod,)), {"uid": ["app"]}).values()

    assert demand.waits.ranked == (0.05, 0.2)
    assert demand.waits.groups == {"main": (0.9, 0.05), "io-#": (pytest.approx(0.4), 0.7)}


def test_families_without_end_are_bounded_and_those_that_matter_stay():
    names = [f"job-{chr(97 + number)}" for number in range(26)]
    waits = waiting(WindowWaits((), {"starved": (0.0, 0.9), name: (0.01, 0.01)}) for name in names)

    assert len(waits.groups) == MOST_GROUPS
    assert waits.groups["starved"].waited_s == pytest.approx(26 * 9.0)


@given(WINDOWS)
def test_waits_are_read_back_from_the_bytes_of_an_interval(windows):
    demand = IntervalDemand(waits=waiting(windows))

    read = unpack(pack(demand)).waits

    assert (read.seconds, read.ranked) == (demand.waits.seconds, pytest.approx(demand.waits.ranked))
    assert read.groups.keys() == demand.waits.groups.keys()


def with_head(waits):
    head = json.dumps([{}, [], waits]).encode()
    empty = b"\0\0"
    return len(head).to_bytes(2, "little") + head + 4 * empty


@pytest.mark.parametrize(
    "waits",
    [
        7,
        [1, [], {}, 0],
        [-1, [], {}],
        [1, [0.0] * 9, {}],
        [1, [-1.0], {}],
        [1, ["1"], {}],
        [1, [], {str(number): [0, 0] for number in range(9)}],
        [1, [], {"a": [0]}],
        [1, [], {"a": [0, "x"]}],
    ],
)
def test_waits_that_no_agent_kept_are_damage(waits):
    assert unpack(with_head([1, [0.5], {"a": [1, 2]}])).waits.groups["a"] == GroupTime(1, 2)

    with pytest.raises(DamagedError):
        unpack(with_head(waits))


def learned(total, ranked, waits, hours=6):
    demand = IntervalDemand()
    for _ in range(hours * 360):
        demand.add(WindowDemand(total, 0.0, ranked, ("main",) * len(ranked), waits), 10)
    return demand


def test_the_reasons_tell_how_long_hot_threads_waited_and_which_group_waits_most():
    waits = WindowWaits((0.12,), {"main": (0.95, 0.12), "worker-#": (0.4, 0.55)})
    demand = learned(1.35, (0.95,), waits)

    reasons = advise(demand, Resources()).reasons

    assert "the hot thread waited in the run queue in 12.0% of the time" in reasons
    assert (
        "threads worker-# used 0.40 CPUs, and 0.55 of them waited in the run queue on average"
        in reasons
    )
    assert run_queue(demand.waits)["groups"][0] == {
        "name": "worker-#",
        "cpus": 0.4,
        "waiting": 0.55,
    }


def test_throttling_is_said_to_be_in_the_waits():
    demand = learned(0.5, (0.5,), WindowWaits((0.4,), {"main": (0.5, 0.4)}))
    demand.counts.throttled_s = 5.0

    reasons = advise(demand, Resources()).reasons

    assert any(reason.endswith("on average, throttling included") for reason in reasons)


def test_short_waits_and_unknown_ones_are_no_reason():
    for waits in (WindowWaits((0.001,), {"main": (0.9, 0.001)}), None):
        reasons = advise(learned(0.9, (0.9,), waits), Resources()).reasons
        assert not any("run queue" in reason for reason in reasons)
    assert run_queue(Waits()) is None
