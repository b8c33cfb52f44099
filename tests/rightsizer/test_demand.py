"""The demand of a container: windows from snapshots, ranks of threads, and sums of intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import Tier
from temper_core.records.snapshots import PodSample
from temper_core.testing import make_snapshot, make_thread
from temper_plugin_rightsizer.demand.interval import MOST_NAMES, Counts, IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey, name_family, window_demands
from temper_plugin_rightsizer.families import MOST_SERIES, hottest_threads
from tests.rightsizer.shapes import learned, over_hours, window

USES = st.lists(
    st.lists(st.floats(0.0, 1.0), max_size=4).map(
        lambda uses: window(*((f"t{number}", used) for number, used in enumerate(uses)))
    ),
    max_size=8,
)


@given(USES, USES)
def test_the_sum_of_two_intervals_is_one_interval_of_all_their_windows(ours, theirs):
    both = learned(ours)
    both.merge(learned(theirs))

    assert both == learned([*ours, *theirs])


def test_two_hot_threads_that_alternate_are_one_hot_thread():
    demand = over_hours(lambda number: window((("left", "right")[number % 2], 0.95), idle=0.1))

    assert demand.ranks[0].percentile(0.95) == pytest.approx(0.95, rel=0.05)
    assert len(demand.ranks) == 1
    assert set(demand.names) == {"left", "right"}


def test_a_restarted_thread_keeps_its_family():
    assert name_family("worker-17") == name_family("worker-3") == "worker-#"


def test_the_names_of_short_lived_threads_are_bounded():
    demand = learned(window((f"job-{chr(97 + number)}", 0.9)) for number in range(26))

    assert len(demand.names) == MOST_NAMES


def test_counters_add_up_and_the_larger_peak_stays():
    counts = Counts(periods=10, throttled_periods=1, throttled_s=0.5, peak_bytes=100)

    counts.merge(Counts(periods=5, oom_kill=1, peak_bytes=70))

    assert counts == Counts(15, 1, 0.5, 100, oom_kill=1)


def demands_of(threads, containers, cpu_used=1.0):
    pod = PodSample("shop", "web", "uid", Tier.NORMAL, len(threads), cpu_used)
    snapshot = make_snapshot(*threads, pods=(pod,))
    demands = window_demands(snapshot, {"uid": containers})
    return {key.container: demand for key, demand in demands.items()}


def thread(used, container="app", comm="worker"):
    place = {"namespace": "shop", "pod": "web", "container": container}
    return make_thread(comm, cpu_used=used, **place)


def test_cpu_time_without_a_sample_goes_to_the_containers_in_proportion():
    demands = demands_of([thread(0.6), thread(0.2, "side")], ["app", "side"], cpu_used=1.0)

    assert demands["app"].total == pytest.approx(0.75)
    assert demands["side"].total == pytest.approx(0.25)


def test_an_idle_container_has_a_demand_of_nothing():
    demands = demands_of([thread(0.5)], ["app", "side"], cpu_used=0.5)

    assert demands["side"].total == 0
    assert demands["side"].ranked == ()


def test_a_container_with_a_thread_has_a_demand_though_none_was_known_to_run():
    demands = demands_of([thread(0.5, "side"), thread(0.1, "")], [], cpu_used=0.6)

    assert demands.keys() == {"side"}
    assert demands["side"].total == pytest.approx(0.6)


def test_a_pod_without_containers_has_one_demand():
    assert demands_of([thread(0.5, "")], [], cpu_used=0.5)[""].ranked == (0.5,)


def test_threads_are_ranked_by_their_use():
    demands = demands_of([thread(0.3), thread(0.9, comm="hot-1"), thread(0.1)], ["app"], 1.3)

    assert demands["app"].ranked == (0.9, 0.3)
    assert demands["app"].names == ("hot-#", "worker")
    assert demands["app"].rest(1) == pytest.approx(0.4)


def test_a_container_is_known_by_the_uid_of_its_pod():
    pod = PodSample("shop", "web", "uid", Tier.NORMAL, 0, 0.0)
    snapshot = make_snapshot(pods=(pod,))

    (key,) = window_demands(snapshot, {"uid": ["app"]})

    assert key == ContainerKey("uid", "shop", "web", "app")


def test_only_the_busiest_containers_have_a_series():
    demands = {
        ContainerKey(f"u{number}", "shop", f"p{number}", "app"): window(("hot", 0.3 + number / 1e3))
        for number in range(MOST_SERIES + 50)
    }

    samples = hottest_threads(demands).samples

    assert len(samples) == MOST_SERIES
    assert samples[0].labels["pod"] == f"p{MOST_SERIES + 49}"


def test_a_time_without_threads_lowers_no_thread():
    watched = learned([window(("hot", 0.9), idle=0.1)] * 360)
    unwatched = IntervalDemand()
    unwatched.cpu.add(1.0, 36_000)
    unwatched.counts.unwatched_s = 36_000

    one, other = IntervalDemand(), IntervalDemand()
    for demand, parts in ((one, (watched, unwatched)), (other, (unwatched, watched))):
        for part in parts:
            demand.merge(part)

    assert one == other
    assert one.cpu.seconds == watched.cpu.seconds + 36_000
    assert one.ranks == watched.ranks
