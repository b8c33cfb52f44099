import pytest

from bench.failures.windows import Request, figures, phases, requests_of, windows, worst


def many(second, ms, count=30):
    return [Request(second + number / count, ms) for number in range(count)]


def test_a_latency_is_from_the_intended_arrival_to_the_answer():
    seen = {"requests": [[2_000_000, 1_500_000, 12_000_000_000]]}

    assert requests_of(seen, struck_s=10.0) == [Request(2.0, 3.5)]


def test_a_window_is_a_second_that_begins_with_the_failure():
    found = windows([Request(-0.5, 1.0), Request(0.0, 2.0), Request(0.9, 4.0), Request(1.0, 3.0)])

    assert [(each["at_s"], each["requests"], each["max"]) for each in found] == [
        (-1.0, 1, 1.0),
        (0.0, 2, 4.0),
        (1.0, 1, 3.0),
    ]


def test_the_worst_window_has_the_highest_p99_of_the_full_ones():
    found = windows([*many(0, 2.0), *many(1, 9.0), *many(2, 99.0, count=3)])

    assert (worst(found)["at_s"], worst(found)["p99"]) == (1.0, 9.0)


def test_a_request_belongs_to_the_scheduler_at_its_arrival():
    requests = [Request(-1.0, 1.0), Request(0.5, 2.0), Request(2.0, 8.0), Request(3.0, 4.0)]

    found = phases(requests, [(1.0, 3.0)])

    assert {kind: each["requests"] for kind, each in found.items()} == {
        "before": 1,
        "stock": 1,
        "engine": 2,
    }
    assert found["stock"]["max"] == 8.0


def test_percentiles_are_in_milliseconds():
    found = figures([Request(0.0, float(ms)) for ms in range(1, 101)])

    assert (found["p50"], found["p99"], found["max"]) == (50.0, 99.0, 100.0)


def test_no_request_has_no_percentile():
    assert figures([]) == {"requests": 0}


def test_a_run_without_a_full_window_has_no_worst_one():
    with pytest.raises(ValueError, match="empty"):
        worst(windows(many(0, 1.0, count=3)))
