"""Results of trainings that the agent keeps and serves."""

import json
from itertools import count

import pytest
from attrs import asdict, evolve

from temper_core import InputError, Request
from temper_core.testing import MadeContext
from temper_plugin_trainer.results import kept_results
from temper_plugin_trainer.results.instrument import TrainingResults
from temper_plugin_trainer.results.kept_results import MOST_KEPT
from temper_plugin_trainer.results.training_result import ArmResult, Comparison, TrainingResult

TRIAL = Comparison(ArmResult("io: boost"), ArmResult("the tier alone"), 8, "kept", 240.0, 0.2)
RESULT = TrainingResult(
    workload="shop",
    profile="shop",
    pods=("shop/db-0",),
    verdict="no improvement found",
    is_better=False,
    metric="p99",
    unit="ms",
    better="lower",
    command="./bench",
    mode="enforcing",
    engine="1.1.4",
    machine="4 cores",
    kernel="6.18",
    date="2026-11-28",
    measurements=40,
    engines_used=0,
    trials=(TRIAL,),
)


@pytest.fixture
def context(tmp_path):
    return MadeContext(folder=tmp_path)


@pytest.fixture(autouse=True)
def _seconds_pass(monkeypatch):
    """Each result comes a second after the one before it."""
    seconds = count(1000)
    monkeypatch.setattr(kept_results.time, "time", lambda: float(next(seconds)))


def ask(instrument, name, document=None):
    (endpoint,) = (each for each in instrument.endpoints() if each.name == name)
    return endpoint.answer(Request(content=json.dumps(document).encode() if document else b""))


def put(instrument, result):
    return ask(instrument, "keep-training", asdict(result))


def workloads(instrument):
    return [each["workload"] for each in ask(instrument, "get-training")["results"]]


def test_without_a_training_nothing_is_kept_and_no_directory_is_made(context, tmp_path):
    assert ask(TrainingResults(context), "get-training") == {"running": [], "results": []}
    assert list(tmp_path.iterdir()) == []


def test_results_outlive_the_agent_the_newest_first(context):
    before = TrainingResults(context)
    put(before, RESULT)
    put(before, evolve(RESULT, workload="web"))

    after = TrainingResults(context)

    assert workloads(before) == workloads(after) == ["web", "shop"]
    assert ask(after, "get-training") == ask(before, "get-training")
    (trial,) = ask(after, "get-training")["results"][1]["trials"]
    assert trial == asdict(TRIAL)


def test_a_result_that_comes_again_keeps_its_place(context):
    instrument = TrainingResults(context)
    put(instrument, RESULT)
    put(instrument, evolve(RESULT, workload="web"))
    put(instrument, RESULT)

    assert workloads(instrument) == ["web", "shop"]


def test_the_oldest_results_are_forgotten(context):
    instrument = TrainingResults(context)
    for number in range(MOST_KEPT + 3):
        put(instrument, evolve(RESULT, workload=str(number)))

    newest = [str(number) for number in range(3, MOST_KEPT + 3)][::-1]
    assert workloads(instrument) == newest
    assert workloads(TrainingResults(context)) == newest


def test_a_file_that_is_cut_short_is_left_out(context):
    put(TrainingResults(context), RESULT)
    (path,) = context.state.path.glob("result-*.json")
    path.write_text(path.read_text()[:50])

    assert workloads(TrainingResults(context)) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"measurements": -1}, "measurements"),
        ({"verdict": "x" * 501}, "verdict"),
        ({"trials": "many"}, "trials"),
        ({"baseline": float("inf")}, "baseline"),
        ({"more": 1}, "more"),
        ({"is_better": "yes"}, "is_better"),
    ],
)
def test_what_is_no_result_is_refused_by_name_and_not_kept(context, changes, words):
    instrument = TrainingResults(context)

    with pytest.raises(InputError, match=words):
        ask(instrument, "keep-training", {**asdict(RESULT), **changes})

    assert workloads(instrument) == []


def test_a_request_without_a_result_is_refused(context):
    with pytest.raises(InputError, match="workload"):
        ask(TrainingResults(context), "keep-training")


def test_results_of_a_clock_that_ran_ahead_make_room_for_new_ones(context, monkeypatch):
    instrument = TrainingResults(context)
    monkeypatch.setattr(kept_results.time, "time", lambda: 1e10)
    for number in range(MOST_KEPT):
        put(instrument, evolve(RESULT, workload=f"ahead-{number}"))
    monkeypatch.setattr(kept_results.time, "time", lambda: 1e9)

    put(instrument, evolve(RESULT, workload="now"))

    assert workloads(instrument)[0] == "now"
    assert len(workloads(instrument)) == MOST_KEPT
