import json

import pytest

from bench.ladder.rows import read, rows
from bench.record_files import UnreadableRecord


def test_lines_of_several_files_are_read_in_order(tmp_path, make_record):
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for seed, path in enumerate(files):
        path.write_text(json.dumps(make_record("stock", seed=seed)) + "\n\n")

    assert [each["seed"] for each in read(files)] == [0, 1]


@pytest.mark.parametrize("line", ["{", "[]", '{"format": 99}', "{}"])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = tmp_path / "spoilt.jsonl"
    path.write_text(line)

    with pytest.raises(UnreadableRecord, match=r"spoilt\.jsonl:1"):
        read([path])


def test_runs_that_repeat_one_another_are_one_row(make_record):
    made = [make_record("tiers", seed=2), make_record("stock"), make_record("tiers", level=0)]

    gathered = rows([*made, make_record("tiers", seed=3)])

    assert [(row.level, row.arm, len(row.records)) for row in gathered] == [
        (0, "tiers", 1),
        (8, "tiers", 2),
        (8, "stock", 1),
    ]


def test_captured_runs_are_rows_of_their_own(make_record):
    made = [make_record("stock"), make_record("stock", capture="none")]

    plain, captured = rows([*made, make_record("stock", capture="node", events=9_000)])

    assert (plain.arm, len(plain.records), plain.spread("events")) == ("stock", 2, None)
    assert (captured.arm, captured.is_kept) == ("stock+node", True)
    assert captured.spread("events").values == (9_000,)


def test_a_figure_that_no_run_has_has_no_spread(make_record):
    (row,) = rows([make_record("stock")])

    assert row.spread("migrations") is None
    assert row.spread("outside") is None


def test_the_thread_that_was_most_outside_counts(make_record):
    (row,) = rows([make_record("tiers", outside=[0.0, 0.25, None])])

    assert row.spread("outside").values == (25.0,)


@pytest.mark.parametrize(
    ("arm", "schedulers", "is_kept"),
    [
        ("tiers", ["engine", "engine"], True),
        ("tiers", ["engine", "changed"], False),
        ("tiers", ["stock"], False),
        ("stock", ["stock"], True),
        ("stock", ["engine"], False),
    ],
)
def test_an_arm_is_kept_where_its_own_scheduler_ran(make_record, arm, schedulers, is_kept):
    (row,) = rows([make_record(arm, scheduler=each) for each in schedulers])

    assert row.is_kept is is_kept


def test_the_clients_delay_is_per_request(make_record):
    (row,) = rows([make_record("tiers"), make_record("tiers", requests=0)])

    assert row.spread("client").values == (0.5,)


def test_log_writers_have_cpus_where_there_are_any(make_record):
    (row,) = rows([make_record("tiers"), make_record("tiers", others={"noise": {"run_ms": 6e3}})])

    assert row.spread("noise").values == (1.5,)
