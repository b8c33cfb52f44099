"""Replays of recorded demand: each shape's verdict, the rules compared, and the sources."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from functools import partial

import pytest
from click.testing import CliRunner

from temper_core import InputError
from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.advice.records import Resources, Verdict
from temper_plugin_rightsizer.backtest.replay import compare, outcome, sized, total
from temper_plugin_rightsizer.backtest.rules import (
    HOUR_S,
    OURS,
    RULES,
    DecayedRule,
    PeakRule,
    PercentileRule,
    Sizing,
    ThreadRule,
)
from temper_plugin_rightsizer.backtest.samples import Sample, steps_of_samples
from temper_plugin_rightsizer.backtest.shapes import DAY_S, SHAPES
from temper_plugin_rightsizer.backtest.sources import demands_of_history, samples_of_file
from temper_plugin_rightsizer.commands.rightsize import command
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.store.history import FILE, History
from tests.rightsizer.shapes import over_hours, window

MIB = 1024 * 1024
BY_NAME = {shape.name: shape for shape in SHAPES}


def steps_of(shape, hours=30):
    return steps_of_samples(shape.samples(hours * HOUR_S))[shape.name]


def steady(cpu, hours, memory_mib=100, **more):
    return [
        ("app", Sample(at, 60, cpu, memory_bytes=memory_mib * MIB, **more))
        for at in range(0, hours * HOUR_S, 60)
    ]


def verdicts(shape, hours, of_hours):
    """Return the verdict of each window of *of_hours* in the first *hours*."""
    steps = steps_of(shape, hours)
    for begin in range(0, hours, of_hours):
        demand = IntervalDemand()
        for step in steps[begin : begin + of_hours]:
            demand.merge(step.merged())
        yield advise(demand, Resources()).verdict


@pytest.mark.parametrize("shape", SHAPES[:-2], ids=lambda shape: shape.name)
def test_each_shape_gets_its_verdict_in_each_window_of_six_hours(shape):
    assert set(verdicts(shape, 30, of_hours=6)) == {shape.verdict}


@pytest.mark.parametrize("shape", SHAPES[-2:], ids=lambda shape: shape.name)
def test_shapes_of_a_day_get_their_verdict_in_a_window_of_a_day(shape):
    assert set(verdicts(shape, 48, of_hours=24)) == {shape.verdict}


def test_six_hours_take_a_nightly_batch_of_one_hour_for_a_hot_thread():
    """A known weakness of the window: the docs name it."""
    found = list(verdicts(BY_NAME["batch each night"], 24, of_hours=6))

    assert found == [Verdict.EXCLUSIVE, *[Verdict.SHARED] * 3]


def test_the_lazy_and_the_hot_shape_use_the_same_on_average():
    lazy, hot = (steps_of(BY_NAME[name], 6) for name in ("four lazy threads", "one hot thread"))

    def mean(steps):
        return sum(step.merged().cpu.mean() for step in steps) / len(steps)

    assert mean(lazy) == pytest.approx(mean(hot), rel=0.02)


def test_a_throttled_hot_thread_gets_a_higher_limit():
    demand = steps_of(BY_NAME["throttled hot thread"], 6)[0].merged()
    demand.counts.periods, demand.counts.throttled_periods = 1000, 100

    advice = advise(demand, Resources(cpu_request_millis=1000, cpu_limit_millis=1000))

    assert advice.recommended.cpu_limit_millis == 1500


def test_the_shapes_are_the_same_in_each_run():
    shape = BY_NAME["bursty pool"]

    assert list(shape.samples(HOUR_S)) == list(shape.samples(HOUR_S))


def test_replicas_that_start_later_have_no_earlier_demand():
    steps = steps_of(BY_NAME["scaled deployment"], 14)

    assert [len(step.replicas) for step in steps] == [2] * 12 + [4] * 2


def test_an_outcome_adds_up_what_was_short_and_what_was_left_over():
    (step,) = steps_of_samples([*steady(1.0, 1)[:30], *steady(3.0, 1)[30:]])["app"]

    found = outcome([(Sizing(2.0, 50.0 * MIB), step)])

    assert found.throttled_s == 1800
    assert found.late_core_s == pytest.approx(1800, rel=0.1)
    assert found.core_s == 7200
    assert found.wasted_core_s == pytest.approx(1800, rel=0.1)
    assert found.oom == 1


def test_the_first_six_hours_are_learned_and_not_judged():
    (judged, step), *_ = sized(steps_of_samples(steady(1.0, 8))["app"], PeakRule())

    assert step.at == 6 * HOUR_S
    assert judged.cpu == pytest.approx(1.0, rel=0.06)


def learned(rule, *samples):
    for step in steps_of_samples(samples)["app"]:
        rule.learn(step)
    return rule.sizing()


def test_the_percentile_rule_is_p95_and_the_peak_with_15_percent():
    sizing = learned(PercentileRule(), *steady(1.0, 20))

    assert sizing.cpu == pytest.approx(1.0, rel=0.06)
    assert sizing.memory_bytes == pytest.approx(115 * MIB, rel=0.001)


def test_the_decayed_rule_forgets_half_in_a_day():
    """Two days of rest count for a quarter of a day of work that went before."""
    busy = steady(2.0, 24)
    rest = [
        ("app", Sample(sample.at + 24 * HOUR_S, 60, 0.1, memory_bytes=100 * MIB))
        for _, sample in steady(0.1, 24 * 4)
    ]

    assert learned(DecayedRule(), *busy, *rest[: 24 * 60]).cpu == pytest.approx(2.3, rel=0.06)
    assert learned(DecayedRule(), *busy, *rest).cpu == pytest.approx(0.115, rel=0.06)


def test_the_decayed_rule_adds_to_the_peak_after_an_oom_kill():
    sizing = learned(DecayedRule(), *steady(1.0, 1, oom_kill=1))

    assert sizing.memory_bytes == pytest.approx(1.15 * 200 * MIB, rel=0.06)


def test_all_rules_request_as_much_at_equal_budget():
    comparison = compare({shape.name: steps_of(shape, 9) for shape in SHAPES}, RULES)

    totals = {rule: total(own.values()) for rule, own in comparison.equal.items()}
    assert totals.keys() == {"temper", "percentile", "decayed", "peak"}
    for each in totals.values():
        assert each.core_s == pytest.approx(totals[OURS].core_s)
        assert each.gib_s == pytest.approx(totals[OURS].gib_s)


@pytest.mark.parametrize("name", ["one hot thread", "two that alternate", "heavy sidecar"])
def test_a_hot_thread_is_served_with_less_waste_than_by_the_other_rules(name):
    """The comparison is over all shapes, as a fleet has one budget."""
    comparison = compare({shape.name: steps_of(shape) for shape in SHAPES}, RULES)

    ours = comparison.equal[OURS][name]
    assert ours.throttled_s == 0
    assert all(
        own[name].throttled_s > 0 or own[name].wasted_core_s > ours.wasted_core_s
        for rule, own in comparison.equal.items()
        if rule != OURS
    )


CSV = """container,replica,at,seconds,cpu,threads,memory_bytes,oom_kill
shop/web,a,0,60,1.2,main=0.9;io=0.2,1048576,0
shop/web,a,60,,0.5,,,1
"""


def test_with_p98_of_a_day_ours_throttles_and_wastes_less_than_each_other_rule():
    options = AdviceOptions(percentile=0.98, margin=1.1)
    containers = steps_of_samples(sample for shape in SHAPES for sample in shape.samples(3 * DAY_S))

    compared = compare(containers, {**RULES, OURS: partial(ThreadRule, DAY_S, options)})

    totals = {rule: total(own.values()) for rule, own in compared.equal.items()}
    ours = totals.pop(OURS)
    for other in totals.values():
        assert ours.throttled_s < other.throttled_s
        assert ours.late_core_s < other.late_core_s
        assert ours.wasted_core_s < other.wasted_core_s


def test_samples_are_read_from_csv_and_from_lines_of_json(tmp_path):
    table, lines = tmp_path / "samples.csv", tmp_path / "samples.jsonl"
    table.write_text(CSV)
    first = {"container": "shop/web", "replica": "a", "at": 0, "cpu": 1.2}
    first |= {"threads": {"main": 0.9, "io": 0.2}, "memory_bytes": MIB}
    second = {"container": "shop/web", "replica": "a", "at": 60, "cpu": 0.5, "oom_kill": 1}
    lines.write_text(f"{json.dumps(first)}\n\n{json.dumps(second)}\n")

    assert list(samples_of_file(table)) == list(samples_of_file(lines))
    assert dict(samples_of_file(table))["shop/web"].oom_kill == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "sample 1: "),
        ("[1]", "sample 1: "),
        ('{"container": "a", "at": 0}', "sample 1 has no 'cpu'"),
        ('{"container": "a", "at": 0, "cpu": "NaN"}', "cpu must be a number from 0 on"),
        ('{"container": "a", "at": 0, "cpu": -1}', "cpu must be a number from 0 on"),
        ('{"container": "a", "at": 0, "cpu": true}', "cpu must be a number"),
        ('{"container": "a", "at": 0, "cpu": 1, "threads": [1]}', "threads must be names"),
        ('{"container": "a", "at": 0, "cpu": 1, "seconds": 0.5}', "seconds must be 1 or more"),
        ("[" * 70_000, "sample 1: the line is longer"),
    ],
)
def test_a_bad_sample_is_one_line_with_its_number(tmp_path, line, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(line)

    with pytest.raises(InputError, match=message) as refused:
        list(samples_of_file(path))
    assert "\n" not in str(refused.value)


def test_a_history_of_a_node_is_replayed_and_left_as_it_is(tmp_path):
    now = 40 * HOUR_S
    history = History(lambda: tmp_path, 2**24, clock=lambda: now)
    demand = over_hours(lambda _: window(("hot", 0.95)), hours=1)
    for hour in range(12):
        history.add(hour * HOUR_S + 300, 300, {ContainerKey("u", "shop", "web", "app"): demand})
        demand = over_hours(lambda _: window(("hot", 0.95)), hours=1)
    before = (tmp_path / FILE).read_bytes()

    done = CliRunner().invoke(
        command, ["backtest", "--history", str(tmp_path / FILE), "--output", "json"]
    )

    assert done.exit_code == 0, done.output
    found = json.loads(done.output)["equal_budget"]["temper"]["containers"]["shop/web/app"]
    assert found["throttled_s"] == 0
    assert found["core_s"] == 6 * 3600
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("read", [samples_of_file, demands_of_history])
def test_a_pipe_without_a_writer_is_refused_in_one_line(tmp_path, monkeypatch, read):
    monkeypatch.setattr("temper_plugin_rightsizer.backtest.sources.PIPE_WAIT_S", 0.1)
    path = tmp_path / "pipe"
    os.mkfifo(path)

    with pytest.raises(
        InputError, match=r"pipe: is (not a regular file|a pipe into which nothing)"
    ):
        list(read(path))


def test_samples_are_read_from_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    sample = {"container": "shop/web", "at": 0, "cpu": 1.2}
    writing = threading.Thread(target=lambda: path.write_text(json.dumps(sample)))
    writing.start()

    ((name, read),) = samples_of_file(path)
    writing.join()

    assert (name, read.cpu) == ("shop/web", 1.2)


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
def test_a_file_that_is_no_history_is_one_line(tmp_path, content):
    path = tmp_path / "demand.sqlite"
    path.write_bytes(content)

    with pytest.raises(InputError, match=r"demand\.sqlite: "):
        demands_of_history(path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE container SET namespace = x'00'",
        "UPDATE container SET uid = x'00'",
        "UPDATE interval SET at = 'noon'",
        "UPDATE interval SET at = 1e308",
        "UPDATE interval SET at = -9223372036854775808",
        "UPDATE interval SET demand = 7",
    ],
)
def test_values_of_other_types_in_a_history_are_one_line(tmp_path, change):
    history = History(lambda: tmp_path, 2**24, clock=lambda: 2 * HOUR_S)
    demand = over_hours(lambda _: window(("hot", 0.95)), hours=1)
    history.add(HOUR_S, 300, {ContainerKey("u", "shop", "web", "app"): demand})
    with closing(sqlite3.connect(tmp_path / FILE)) as database, database:
        database.execute(change)

    with pytest.raises(InputError, match=r"demand\.sqlite: "):
        demands_of_history(tmp_path / FILE)


def test_a_history_with_an_endless_view_is_refused(tmp_path):
    path = tmp_path / FILE
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE container (id, uid, namespace, pod, container);"
            "INSERT INTO container VALUES (1, 'u', 'n', 'p', 'c');"
            "CREATE VIEW interval AS WITH RECURSIVE endless(x) AS"
            " (SELECT 1 UNION ALL SELECT x FROM endless)"
            " SELECT 2 * x AS container, 0 AS at, 1 AS seconds, x'00' AS demand FROM endless;"
        )

    with pytest.raises(InputError, match="is no history of this version"):
        demands_of_history(path)


def test_a_line_without_an_end_is_one_line_of_error(tmp_path):
    path = tmp_path / "zero.csv"
    with path.open("wb") as file:
        file.truncate(64 << 20)

    with pytest.raises(InputError, match="the line is longer than"):
        list(samples_of_file(path))


def test_the_memory_of_a_replay_is_bounded(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("container,at,cpu\n" + "".join(f"{n},0,1\n" for n in range(200_000)))
    program = (
        "from temper_core import bounded_memory\n"
        f"bounded_memory.MOST_BYTES = {160 << 20}\n"
        "from temper_core.cli.entry import main\n"
        "main()"
    )

    words = [sys.executable, "-c", program, "rightsize", "backtest", path]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    # The interpreter may add that it lacked memory to close a file.
    assert ended.stderr.endswith("temper: the demand takes more than 160 MiB of memory\n")


def test_a_missing_history_is_not_created(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        demands_of_history(tmp_path / FILE)
    assert not list(tmp_path.iterdir())


def test_without_enough_demand_there_is_one_line(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text(CSV)

    done = CliRunner().invoke(command, ["backtest", str(path)])

    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith(f"{path}: no container has more than 6 hours of demand")
    assert str(done.exception).endswith("; the longest spans up to 1 h")


def test_without_any_demand_the_sources_are_named():
    done = CliRunner().invoke(command, ["backtest"])

    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith("there is no demand; give files of samples, --history")


def test_the_table_has_each_rule_twice_and_the_losing_cases():
    done = CliRunner().invoke(command, ["backtest", "--shapes", "1"])

    assert done.exit_code == 0, done.output
    for rule in RULES:
        assert done.output.count(f"\n{rule} ") == 2
    assert f"of {len(SHAPES)}:" in done.output


def test_a_damaged_interval_is_left_out(tmp_path):
    history = History(lambda: tmp_path, 2**24, clock=lambda: DAY_S)
    key = ContainerKey("u", "shop", "web", "app")
    history.add(0, 300, {key: over_hours(lambda _: window(idle=0.1), hours=1)})
    history.add(HOUR_S, 300, {key: over_hours(lambda _: window(idle=0.1), hours=1)})
    database = sqlite3.connect(tmp_path / FILE)
    with database:
        database.execute("UPDATE interval SET demand = x'00' WHERE at = 0")
    database.close()

    assert list(demands_of_history(tmp_path / FILE)) == [("shop/web/app", "u", HOUR_S)]
