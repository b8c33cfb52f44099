import json

import pytest

from bench.failures.record import FORMAT, Played, read, record_of
from bench.failures.watch import Change
from bench.record_files import UnreadableRecord

STRUCK_S, ENDED_S = 10.0, 40.0
TOLD = {"engine": "scx_layered 1.1.4", "plan": "a", "plan_after": "b", "said": ""}


def request(at_s, ms):
    return [int(ms * 1e6), 0, int(at_s * 1e9)]


@pytest.fixture
def record():
    """A failure at 10 s: the stock scheduler from 12 to 20 s, on which requests take longer."""
    changes = [Change(0.0, True, 1), Change(12.0, False, 1), Change(20.0, True, 2)]
    times = [4.0 + number / 25 for number in range(800)]
    requests = [request(at_s, 8.0 if 12 <= at_s < 20 else 1.0) for at_s in times]
    seen = {"requests": requests, "unanswered": 3, "client_late_ns": 2_500_000}
    marks = [(STRUCK_S, "SIGKILL"), (20.5, "the agent enforces")]
    return record_of("engine-killed", Played(TOLD, marks, changes, seen, ENDED_S))


def test_times_are_in_seconds_since_the_first_mark(record):
    assert record["marks"] == [[0.0, "SIGKILL"], [10.5, "the agent enforces"]]
    assert record["timeline"] == {
        "stock_after_s": 2.0,
        "back_after_s": 10.0,
        "stock_s": 8.0,
        "attaches": 1,
    }


def test_latencies_are_apart_by_the_scheduler_at_the_time(record):
    phases = record["phases"]

    assert [phases[kind]["p99"] for kind in ("before", "stock", "engine")] == [1.0, 8.0, 1.0]
    assert record["worst"]["p99"] == 8.0
    assert 2 <= record["worst"]["at_s"] < 10
    assert record["unanswered"] == 3


def test_the_worst_second_is_one_after_the_failure():
    requests = [request(5.0 + number / 100, 50.0) for number in range(50)]
    requests += [request(11.0 + number / 100, 2.0) for number in range(50)]
    seen = {"requests": requests, "unanswered": 0, "client_late_ns": 0}

    record = record_of("x", Played(TOLD, [(STRUCK_S, "x")], [Change(0, True, 1)], seen, ENDED_S))

    assert record["worst"]["p99"] == 2.0


def test_a_record_is_read_as_it_was_written(record, tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({"format": FORMAT, **record}) + "\n")

    assert read([path]) == [{"format": FORMAT, **json.loads(json.dumps(record))}]


@pytest.mark.parametrize("line", ["{", "[]", '{"format": 0}'])
def test_a_line_that_is_no_record_is_refused_with_its_place(line, tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(f"{line}\n")

    with pytest.raises(UnreadableRecord, match=r"records.jsonl:1: "):
        read([path])
