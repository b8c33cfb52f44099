import gc
import pickle

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.metrics.label_text import REST
from temper_core.metrics.thread_totals import CLEARLY_BUSIER, TOP_NAMES, PodThreads
from temper_core.metrics.totals import FORGET_S, MOST_GONE, Totals, merged_pods
from temper_core.records.snapshots import LayerSample, Overhead, PodSample, ThreadSample
from temper_core.records.tiers import LayerKind, Tier
from temper_core.records.wakes import WaitHistogram

WINDOW_S = 5.0
WEB = ("shop", "web")


def pod(name="web", cpus=1.0, **changes):
    return evolve(PodSample("shop", name, f"uid-{name}", Tier.HIGH, 1, cpus), **changes)


def thread(comm, cpus, name="web", tid=1):
    return ThreadSample(tid, 1, comm, "java", 1, 0, cpus, cpus / 10, namespace="shop", pod=name)


def waits(subject, *counts, total_s=0.0):
    return WaitHistogram(subject, counts, total_s)


@pytest.fixture
def node(fakes):
    """Observe windows of five seconds, one after another."""

    class Node:
        totals = Totals()
        now = 100.0

        def observe(self, *pods, **changes):
            self.now += WINDOW_S
            given = {"threads": (), "layers": (), "overhead": Overhead()} | changes
            snapshot = fakes.a_snapshot(
                monotonic_s=self.now, window_s=given.pop("window_s", WINDOW_S), pods=pods, **given
            )
            self.totals.add(snapshot)
            return snapshot

        @property
        def sums(self):
            return self.totals.sums

        @property
        def threads(self):
            return self.sums.pods[WEB].threads.cpu_s

    return Node()


def test_rates_of_windows_add_up_to_seconds(node):
    node.observe(pod(cpus=1.5, run_delay=0.5, short_lived_cpu_used=0.1, switches=7))
    node.observe(pod(cpus=0.5, throttled_s=2.0, switches=3), window_s=2.0)

    sums = node.sums.pods[WEB]
    assert sums.cpu_s == pytest.approx(1.5 * 5 + 0.5 * 2)
    assert sums.run_delay_s == pytest.approx(2.5)
    assert sums.short_lived_s == pytest.approx(0.5)
    assert (sums.throttled_s, sums.switches) == (2.0, 10)
    assert node.sums.observed_s == pytest.approx(7)


def test_a_window_that_is_shown_twice_counts_once(node):
    snapshot = node.observe(pod())
    node.totals.add(snapshot)

    assert node.sums.pods[WEB].cpu_s == pytest.approx(5)


def test_the_baseline_adds_nothing(node):
    node.observe(pod(), window_s=0.0, threads=(thread("a", 1.0),))

    assert node.sums.pods[WEB].cpu_s == 0
    assert not node.threads


def test_switches_are_unknown_once_there_was_a_window_in_which_they_were(node):
    node.observe(pod(switches=3))
    node.observe(pod(switches=-1))
    node.observe(pod(switches=4))

    assert node.sums.pods[WEB].switches == -1


def test_pods_of_one_name_have_no_memory_where_that_of_one_is_not_known():
    merged = merged_pods([pod(memory_bytes=3), pod(memory_bytes=-1, uid="another")])

    assert merged[WEB].memory_bytes == -1


def test_a_pod_that_comes_back_soon_goes_on_where_it_was(node):
    node.observe(pod())
    node.observe()
    node.observe(pod())

    assert node.sums.pods[WEB].cpu_s == pytest.approx(10)


def test_a_pod_that_stays_away_begins_anew(node):
    node.observe(pod())
    node.now += FORGET_S
    node.observe()
    node.observe(pod())

    assert node.sums.pods[WEB].cpu_s == pytest.approx(5)


def test_a_tier_keeps_what_its_pods_used_that_have_left(node):
    node.observe(pod(cpus=2.0, run_delay=1.0))
    node.now += 10 * FORGET_S
    node.observe(pod("other", cpus=1.0))

    assert node.sums.tiers[Tier.HIGH] == pytest.approx((15, 5))
    assert node.sums.tiers[Tier.LOW] == (0, 0)


def test_pods_that_come_and_go_leave_nothing_behind(node):
    present = 30
    for n in range(0, 3_000, present):
        names = [f"job-{n + each}" for each in range(present)]
        node.observe(*map(pod, names), threads=tuple(thread("a", 0.5, name) for name in names))

    assert len(node.sums.pods) <= present + MOST_GONE
    gc.collect()
    followed = sum(isinstance(each, PodThreads) for each in gc.get_objects())
    assert followed <= present + MOST_GONE


def test_pods_of_one_name_are_one(node):
    node.observe(pod(cpus=1.0, memory_bytes=3), pod(cpus=0.5, memory_bytes=4, uid="another"))

    merged = merged_pods([pod(cpus=1.0, memory_bytes=3), pod(cpus=0.5, memory_bytes=4)])
    assert (merged[WEB].cpu_used, merged[WEB].memory_bytes) == (1.5, 7)
    assert node.sums.pods[WEB].cpu_s == pytest.approx(7.5)


def test_threads_add_up_to_their_pod_by_name(node):
    threads = (thread("worker-1", 0.4), thread("worker-2", 0.5, tid=2), thread("gc", 0.2, tid=3))
    node.observe(pod(cpus=1.5), threads=threads)

    assert node.threads == pytest.approx({"worker-*": 4.5, "gc": 1.0, REST: 2.0})
    assert sum(node.threads.values()) == pytest.approx(node.sums.pods[WEB].cpu_s)
    assert node.sums.pods[WEB].threads.run_delay_s["worker-*"] == pytest.approx(0.45)


def test_a_thread_that_is_called_rest_is_among_the_rest(node):
    named = [thread(name, 0.5) for name in "abcde"]
    node.observe(pod(cpus=4.0), threads=(thread(REST, 1.0), *named))

    assert node.threads == pytest.approx({REST: 7.5} | dict.fromkeys("abcde", 2.5))


def test_a_name_that_hardly_runs_is_not_told(node):
    node.observe(pod(cpus=0.5), threads=(thread("idle", 0.0001), thread("busy", 0.4, tid=2)))

    assert set(node.threads) == {"busy", REST}


def test_the_busiest_names_are_told(node):
    names = "abcdefgh"
    threads = tuple(thread(name, (n + 1) / 10, tid=n) for n, name in enumerate(names))
    node.observe(pod(cpus=4.0), threads=threads)

    assert set(node.threads) == {*names[-TOP_NAMES:], REST}


def test_a_name_stays_until_another_is_clearly_busier(node):
    first = [thread(name, 0.5, tid=n) for n, name in enumerate("abcde")]
    node.observe(pod(cpus=4.0), threads=tuple(first))
    for _ in range(100):
        node.observe(pod(cpus=4.0), threads=(*first, thread("rival", 0.6, tid=9)))
    shortly = set(node.threads)
    for _ in range(100):
        rival = thread("rival", 0.6 * CLEARLY_BUSIER, tid=9)
        node.observe(pod(cpus=4.0), threads=(*first, rival))

    assert shortly == {*"abcde", REST}
    assert "rival" in node.threads
    assert len(node.threads) == TOP_NAMES + 1


def test_names_that_come_and_go_leave_nothing_behind():
    threads = PodThreads()
    words = [f"{a}{b}{c}" for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
    for n in range(0, len(words), 4):
        threads.add({word: [0.2, 0.0] for word in words[n : n + 4]}, pod(), WINDOW_S)

    assert len(threads.totals.cpu_s) == TOP_NAMES + 1
    assert len(pickle.dumps(threads)) < 3_000


def test_names_are_followed_for_as_long_as_a_node_is_up():
    threads = PodThreads()
    for _ in range(40):
        threads.add({"a": [0.5, 0.0]}, pod(), 3_600.0)
    for _ in range(3):
        threads.add({}, pod(cpus=0.0), 1e6)
    threads.add({"a": [0.5, 0.0], "b": [0.9, 0.0]}, pod(), WINDOW_S)

    assert threads.totals.cpu_s["a"] == pytest.approx(40 * 1_800 + 2.5)
    assert threads.totals.cpu_s["b"] == pytest.approx(4.5)


def test_a_pod_that_does_nothing_has_a_rest_of_nothing(node):
    node.observe(pod(cpus=0.0))
    node.observe(pod(cpus=0.0))

    assert node.threads == {REST: 0.0}


def test_what_was_busy_long_ago_makes_room_for_what_is_busy_now(node):
    node.observe(pod(cpus=4.0), threads=tuple(thread(name, 0.9) for name in "abcde"))
    node.now += 3_600
    node.observe(pod(cpus=0.0), window_s=3_600.0)
    for _ in range(3):
        node.observe(pod(), threads=(thread("new", 0.1),))

    assert "new" in node.threads


@settings(max_examples=30)
@given(
    windows=st.lists(
        st.dictionaries(st.sampled_from("abcdefghij"), st.floats(0, 1), max_size=8), max_size=30
    )
)
def test_what_a_pod_and_its_names_used_never_falls(windows):
    threads, last = PodThreads(), {}
    for used in windows:
        sample = pod(cpus=sum(used.values()) + 0.25)
        threads.add({name: [cpus, cpus] for name, cpus in used.items()}, sample, WINDOW_S)

        now = threads.totals.cpu_s
        assert all(now[name] >= last[name] for name in now.keys() & last.keys())
        assert len(now) <= TOP_NAMES + 1
        last = now


def test_layers_and_overhead_add_up(node):
    layer = LayerSample("open", LayerKind.OPEN, (), 2.0, None, 1)
    for _ in range(2):
        overhead = Overhead({"observe_user": 0.001}, bpf_cpu_ratio=0.002)
        node.observe(layers=(layer,), overhead=overhead)

    assert node.sums.layers["open"].cpu_s == pytest.approx(20)
    assert node.sums.overhead_s == pytest.approx({"observe_user": 0.01})
    assert node.sums.bpf_s == pytest.approx(0.02)
