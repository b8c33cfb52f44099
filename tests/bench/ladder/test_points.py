import pytest
from attrs import evolve

from bench.ladder.kernel import Scheduler
from bench.ladder.points import Reading, counted, latencies, of_threads, outside

STOCK, ENGINE = Scheduler("disabled", 3), Scheduler("enabled", 3)
THROTTLED = {"nr_throttled": 1, "throttled_usec": 500}
BEFORE = Reading(10.0, ENGINE, {"cpu": (100, 1000)}, 2.0, THROTTLED, 1_000_000)


@pytest.mark.parametrize(
    ("work", "own", "share"),
    [
        ({"0": 50, "1": 50}, {0, 1}, 0.0),
        ({"0": 75, "3": 25}, {0, 1}, 0.25),
        ({"3": 5}, {0, 1}, 1.0),
        ({"3": 5}, set(), None),
        ({}, {0}, None),
    ],
    ids=["inside", "partly", "all", "owns-none", "idle"],
)
def test_work_outside_is_a_share_of_a_threads_own_work(work, own, share):
    assert outside(work, frozenset(own)) == share


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (ENGINE, ENGINE, "engine"),
        (STOCK, STOCK, "stock"),
        (ENGINE, STOCK, "changed"),
        (ENGINE, Scheduler("enabled", 4), "changed"),
    ],
    ids=["engine", "stock", "ejected", "attached-anew"],
)
def test_a_scheduler_counts_where_it_ran_throughout(before, after, told):
    seen = counted(evolve(BEFORE, scheduler=before), evolve(BEFORE, at_s=14.0, scheduler=after))

    assert seen["scheduler"] == told


def test_counts_are_differences_and_rates():
    after = Reading(
        14.0,
        ENGINE,
        {"cpu": (300, 1400)},
        2.2,
        {"nr_throttled": 3, "throttled_usec": 900},
        9_000_000,
    )

    seen = counted(BEFORE, after)

    assert seen["seconds"] == 4.0
    assert seen["idle"] == {"cpu": 0.5}
    assert seen["agent_cpu"] == 0.05
    assert seen["background_mturns_per_s"] == 2.0
    assert seen["throttled"] == {"nr_throttled": 2, "throttled_usec": 400}


def test_a_latency_is_the_wait_and_the_service():
    seen = latencies(
        {"requests": [[1_000_000, 2_000_000]], "unanswered": 1, "client_late_ns": 5_000_000}
    )

    assert (seen["requests"], seen["unanswered"], seen["client_late_ms"]) == (1, 1, 5.0)
    assert (seen["wait_ms"]["p50"], seen["service_ms"]["p50"], seen["total_ms"]["p50"]) == (1, 2, 3)


def thread(kind, tid, migrations=2, work=None):
    counts = {"run_ns": 4_000_000, "delay_ns": 1_000_000, "migrations": migrations}
    return {"kind": kind, "tid": tid, "work_by_cpu": work or {}, **counts}


def test_the_client_is_no_served_thread():
    seen = {"threads": [thread("client", 1), thread("server", 2, work={"0": 3, "3": 1})]}

    told = of_threads(seen, {1: "open", 2: "critical"}, {"critical": frozenset({0, 1})})["threads"]

    assert told["server"]["delay_ratio"] == 0.25
    assert (told["server"]["threads"], told["server"]["migrations"]) == (1, 2)
    assert (told["server"]["layers"], told["server"]["outside"]) == (["critical"], [0.25])
    assert set(told) == {"client", "server"}


def test_threads_of_a_burst_are_counted_apart():
    seen = {"threads": [thread("server", 1), thread("burst", 2), thread("burst", 3)]}

    told = of_threads(seen, {}, {})["threads"]

    assert (told["burst"]["threads"], told["server"]["threads"]) == (2, 1)


def test_the_longest_wait_is_that_of_the_worst_log_writer():
    writers = [{**thread("noise", tid), "longest_gap_ns": tid * 1_000_000} for tid in (2, 3)]

    told = of_threads({"threads": [thread("server", 1), *writers]}, {}, {})["threads"]

    assert told["noise"]["longest_wait_ms"] == 3.0
    assert "longest_wait_ms" not in told["server"]


def test_migrations_that_the_kernel_does_not_count_are_unknown():
    told = of_threads({"threads": [thread("server", 1, migrations=-1)]}, {}, {})["threads"]

    assert told["server"]["migrations"] is None
