import pytest

from temper_plugin_trainer.training.classes import (
    Behaviour,
    Channel,
    ThreadClass,
    Waking,
    channel_of,
    classify,
)
from tests.trainer.training.bundled import BY_NETWORK, BY_THREADS

COMPUTE, LATENCY = ThreadClass.SYNC_COMPUTE, ThreadClass.LATENCY_CRITICAL
CHAIN, SPORADIC = ThreadClass.WAKE_CHAIN, ThreadClass.SPORADIC


def behaviour(run_s, sleeps, wait_s=0.0, sleeps_in=BY_NETWORK, **more):
    return Behaviour(10.0, run_s, wait_s, sleeps, sleeps_in=sleeps_in, **more)


@pytest.mark.parametrize(
    ("run_s", "sleeps", "sleeps_in", "kind"),
    [
        (10.0, 0, {}, COMPUTE),
        (5.0, 2500, {}, COMPUTE),
        (4.9, 200, {}, LATENCY),
        (5.0, 2501, BY_NETWORK, LATENCY),
        (4.0, 9, {}, SPORADIC),
        (0.09, 9000, BY_THREADS, SPORADIC),
        (0.1, 9000, BY_THREADS, CHAIN),
        (0.1, 9000, BY_NETWORK, LATENCY),
        (0.19, 200, BY_THREADS, CHAIN),
        (0.3, 200, BY_THREADS, LATENCY),
    ],
)
def test_a_class_follows_from_cpu_time_sleeps_and_what_wakes(run_s, sleeps, sleeps_in, kind):
    assert classify(behaviour(run_s, sleeps, sleeps_in=sleeps_in)).kind is kind


def test_a_thread_that_never_sleeps_computes_however_long_it_waits_for_a_cpu():
    starved = behaviour(0.5, 3, wait_s=9.5)

    assert classify(starved).kind is COMPUTE
    assert starved.share == 1.0
    assert starved.wait_share == 0.95


def test_waits_for_a_cpu_change_no_rate_of_a_thread_that_runs_and_sleeps_in_turn():
    alone = behaviour(1.0, 1000)
    crowded = Behaviour(19.0, 1.0, 9.0, 1000, sleeps_in=BY_NETWORK)

    assert (alone.share, alone.rate, alone.run_ms) == (crowded.share, crowded.rate, crowded.run_ms)


def test_the_confidence_is_a_half_at_a_threshold_and_rises_with_the_distance():
    near, far = classify(behaviour(10.0, 4999)), classify(behaviour(10.0, 100))

    assert near.confidence == 0.5
    assert far.confidence == 0.88


def test_seen_wakers_count_more_than_wait_channels():
    woken = behaviour(1.0, 5000, sleeps_in=BY_NETWORK, waking=Waking(100, 95))

    classed = classify(woken)

    assert classed.kind is CHAIN
    assert "by its wakers" in classed.why
    assert classed.confidence > 0.8


def test_a_few_seen_wake_ups_do_not_outweigh_wait_channels():
    woken = behaviour(1.0, 5000, sleeps_in=BY_THREADS, waking=Waking(5, 0))

    assert classify(woken).kind is CHAIN


def test_wait_channels_alone_never_make_a_chain_certain():
    classed = classify(behaviour(0.2, 9000, sleeps_in=BY_THREADS))

    assert (classed.kind, classed.confidence) == (CHAIN, 0.8)


@pytest.mark.parametrize(
    ("unclear", "doubt"),
    [
        (behaviour(1.0, 5000, sleeps_in={}), "what wakes it is not known"),
        (behaviour(3.0, 50), "fits no class well"),
        (Behaviour(0.05, 0.04, 0.0, 0), "too few samples: 0.04 s on a CPU"),
        (Behaviour(0.1, 0.01, 0.0, 10, sleeps_in=BY_NETWORK), "too few samples: 10 sleeps"),
    ],
)
def test_what_cannot_be_told_is_said_and_lowers_the_confidence(unclear, doubt):
    classed = classify(unclear)

    assert classed.doubt.startswith(doubt)
    assert classed.confidence <= 0.5


@pytest.mark.parametrize("counters", [(0.0, 0.0, 0.0, 0), (1e-6, 1e9, 1e9, 10**15)])
def test_counters_at_their_bounds_have_a_class(counters):
    assert 0 <= classify(Behaviour(*counters)).confidence <= 1


@pytest.mark.parametrize(
    ("function", "channel"),
    [
        ("futex_do_wait", Channel.THREADS),
        ("anon_pipe_read", Channel.THREADS),
        ("unix_stream_read_generic", Channel.THREADS),
        ("hrtimer_nanosleep", Channel.TIMER),
        ("do_epoll_wait", Channel.NETWORK),
        ("wait_woken", Channel.NETWORK),
        ("__skb_wait_for_more_packets", Channel.NETWORK),
        ("io_schedule", Channel.DISK),
        ("__do_sys_pause", Channel.OTHER),
    ],
)
def test_a_wait_channel_tells_what_wakes(function, channel):
    assert channel_of(function) is channel
