import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.observe.cgroup_limits import Quota
from temper_core.observe.cgroup_usage import CgroupReader
from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.throttling import ThrottleCounters, explained_us, parse_flat_keyed

BUSY = "import os; os.sched_setaffinity(0, {0}); print('up', flush=True)\nwhile True: pass"
HALF = Quota(50_000, 100_000)


def test_a_real_quotas_throttling_is_that_of_the_kernels_file(spawn, throttled, wait_until):
    path, roots, join = throttled
    file = Path(roots.cpu, path, "cpu.stat")
    join(spawn(BUSY).pid)
    reader = CgroupReader(roots, DescriptorBudget(), os.cpu_count)
    reader.follow([path])

    def counted():
        return {key: int(value) for key, value in map(str.split, file.read_text().splitlines())}

    outer_before, began = counted(), time.monotonic()
    reader.read()
    inner_before = counted()
    wait_until(lambda: counted()["nr_throttled"] >= inner_before["nr_throttled"] + 10)
    inner_after = counted()
    [usage] = reader.read().values()
    outer_after, window_us = counted(), (time.monotonic() - began) * 1e6
    reader.close()

    seen = usage.throttled
    for number, key in ((seen.periods, "nr_periods"), (seen.throttled_periods, "nr_throttled"),
                        (seen.throttled_us * 1000, "throttled_time")):  # fmt: skip
        least, most = inner_after[key] - inner_before[key], outer_after[key] - outer_before[key]
        assert least - 1000 <= number <= most + 1000
    assert usage.limits.quota_cores == 0.1
    # It wanted one CPU and no more: all of the throttling is pressure, and most of the pressure.
    assert 0 < usage.throttled.explained_us <= window_us
    assert usage.stalled_us > 0.5 * usage.throttled.explained_us


def test_of_one_throttled_thread_all_the_throttled_time_is_explained():
    counted = ThrottleCounters(periods=10, throttled_periods=10, throttled_us=500_000)

    assert explained_us(counted, HALF, 8) == 500_000


def test_throttling_on_several_cpus_at_once_explains_its_mean():
    # Four threads on four CPUs share two CPUs' worth: each is throttled for half of every period.
    counted = ThrottleCounters(periods=10, throttled_periods=10, throttled_us=2_000_000)

    assert explained_us(counted, Quota(200_000, 100_000), 8) == pytest.approx(500_000)


def test_the_cpus_of_the_machine_bound_what_it_can_have_wanted():
    counted = ThrottleCounters(periods=1, throttled_periods=1, throttled_us=2_000_000)

    assert explained_us(counted, HALF, 2) == 1_000_000


def test_without_a_known_quota_the_whole_sum_is_explained():
    assert explained_us(ThrottleCounters(2, 2, 30_000), None, 8) == 30_000


def test_counters_that_fell_are_those_of_a_new_cgroup():
    assert ThrottleCounters(3, 2, 10).since(ThrottleCounters(9, 8, 70)) == ThrottleCounters(
        3, 2, 10
    )
    assert ThrottleCounters(3, 2, 10).since(None) == ThrottleCounters()


COUNTS = st.integers(0, 10**12)


@settings(max_examples=60)
@given(COUNTS, COUNTS, st.integers(1_000, 10**8), st.integers(1_000, 10**6), st.integers(0, 512))
def test_what_is_explained_is_never_more_than_what_was_throttled(
    periods, throttled_us, time_us, period_us, cpus
):
    counted = ThrottleCounters(periods, periods, throttled_us)

    explained = explained_us(counted, Quota(time_us, period_us), cpus)

    assert 0 <= explained <= throttled_us
    assert explained * max(cpus, 1) >= throttled_us * 0.999 or not cpus


@settings(max_examples=60)
@given(st.binary(max_size=80))
def test_lines_that_are_no_pairs_are_passed_over(content):
    found = parse_flat_keyed(b"usage_usec 5\n" + content + b"\nnr_periods 6\n")

    assert found[b"nr_periods"] == 6
    assert all(value >= 0 for value in found.values())


@settings(max_examples=40)
@given(COUNTS, COUNTS, COUNTS)
def test_both_kernels_spellings_of_throttling_are_read(periods, throttled, time_us):
    start = f"usage_usec 1\nnr_periods {periods}\nnr_throttled {throttled}\n"
    v2 = parse_flat_keyed(f"{start}throttled_usec {time_us}\n".encode())
    v1 = parse_flat_keyed(f"{start}throttled_time {time_us * 1000}\nnr_bursts 0\n".encode())

    expected = ThrottleCounters(periods, throttled, time_us)

    assert ThrottleCounters.of(v2) == ThrottleCounters.of(v1) == expected
    assert ThrottleCounters.of({b"usage_usec": 1}) is None
