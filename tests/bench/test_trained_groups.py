"""Training's classes beside the packs, on the recorded servers."""

import pytest

from bench.trained_groups import Difference, bundle_of, compared
from tests.builtin_profiles.recorded import PAIRS, RECORDINGS


@pytest.mark.parametrize("recording", ["nginx-1.22.1", "memcached-1.6.18", "haproxy-2.6.12"])
def test_servers_without_work_of_their_own_have_equal_groups(recording):
    pack = recording.partition("-")[0]

    assert compared(pack, recording).equal > 0.99


def test_a_class_does_not_tell_that_a_snapshot_is_not_the_work_of_redis():
    comparison = compared("redis", "redis-8.0.2")

    snapshots = Difference("redis-server", "sync compute", "snapshots", "yield")
    assert list(comparison.differing) == [snapshots]
    assert comparison.equal + comparison.unclear + comparison.differing[snapshots] > 0.99


def test_no_thread_of_a_recording_is_left_out():
    for _, recording in PAIRS:
        table = RECORDINGS[recording]
        bundle, rows = bundle_of(table)
        assert len(bundle.threads) == len(rows) == sum(row.count for row in table.threads)
        assert sum(thread.run_s for thread in bundle.threads) == pytest.approx(
            sum(row.cpus_used for row in table.threads) * table.seconds, rel=1e-3, abs=1e-3
        )


def test_threads_that_differ_use_less_than_half_of_the_cpu_time():
    for pair in PAIRS:
        assert sum(compared(*pair).differing.values()) < 0.5, pair
