"""Trainings that run now, as the agent serves them."""

import json

import pytest

from temper_core import InputError, Request, Requester
from temper_core.testing import MadeContext
from temper_plugin_trainer.results.instrument import TrainingResults
from temper_plugin_trainer.results.runs_under_way import MOST_RUNS, SILENT_S, RunsUnderWay

REPORT = {
    "workload": "shop",
    "profile": "shop",
    "pods": ["shop/db-0"],
    "command": "./bench",
    "metric": "p99",
    "trials": 12,
    "phase": "trial 2",
    "arm": "io: boost",
    "trial": 2,
    "block": 3,
    "blocks": 24,
    "measured": 40,
    "left_s": 90.5,
    "ended": [{"change": "the whole profile", "verdict": "kept", "gain": 0.2, "blocks": 8}],
}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def runs(clock):
    return RunsUnderWay(clock)


def listed(runs):
    return [each["id"] for each in runs.documents()]


def test_a_run_is_shown_as_it_was_reported_last(runs):
    runs.report("a1", {**REPORT, "measured": 39})
    runs.report("a1", REPORT)

    (shown,) = runs.documents()

    assert json.loads(json.dumps(shown)) | REPORT == json.loads(json.dumps(shown))
    assert (shown["id"], shown["abort"], shown["begun_at"] > 1e9) == ("a1", "", True)


def test_the_answer_to_a_report_tells_an_abort_and_who_asked_for_it_first(runs):
    before = runs.report("a1", REPORT)
    assert runs.abort("a1", "token ops")
    assert runs.abort("a1", "socket uid 0")

    assert before == ""
    assert runs.report("a1", REPORT) == "aborted by token ops"
    assert runs.report("b2", REPORT) == ""


def test_a_run_that_is_over_or_silent_is_shown_no_more(runs, clock):
    runs.report("a1", REPORT)
    runs.report("b2", REPORT)
    clock.now += SILENT_S
    runs.report("b2", {**REPORT, "is_over": True})
    still = listed(runs)
    clock.now += 1

    assert still == ["a1"]
    assert listed(runs) == []
    assert not runs.abort("a1", "token ops")


def test_a_run_that_is_over_leaves_no_abort_to_the_next_of_its_id(runs):
    runs.report("a1", REPORT)
    runs.abort("a1", "token ops")
    runs.report("a1", {**REPORT, "is_over": True})

    assert runs.report("a1", REPORT) == ""


def test_a_run_too_many_is_refused_and_the_others_go_on(runs, clock):
    for number in range(MOST_RUNS):
        runs.report(f"r{number}", REPORT)
    with pytest.raises(InputError, match="report already"):
        runs.report("one", REPORT)

    runs.report("r0", REPORT)
    clock.now += SILENT_S + 1
    runs.report("one", REPORT)

    assert listed(runs) == ["one"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload": None}, "workload"),
        ({"phase": "x" * 501}, "phase"),
        ({"block": -1}, "block"),
        ({"left_s": float("nan")}, "left_s"),
        ({"left_s": -1.0}, "left_s"),
        ({"pods": ["p"] * 65}, "pods"),
        ({"ended": [{"change": "a"}]}, "ended"),
        ({"more": 1}, "more"),
    ],
)
def test_what_is_no_report_is_refused_by_name_and_not_shown(runs, changes, words):
    with pytest.raises(InputError, match=words):
        runs.report("a1", {**REPORT, **changes})

    assert listed(runs) == []


@pytest.mark.parametrize("name", ["", "A", "a b", "x" * 33, "a\n"])
def test_an_id_that_is_none_is_refused(runs, name):
    with pytest.raises(InputError, match="32 small letters"):
        runs.report(name, REPORT)


def ask(instrument, name, document=None):
    (endpoint,) = (each for each in instrument.endpoints() if each.name == name)
    assert endpoint.acts
    content = json.dumps(document).encode() if document else b""
    asked = Request({"id": "a1"}, content=content, requester=Requester("token", "ops"))
    return endpoint.answer(asked)


def test_the_endpoints_report_and_abort(tmp_path):
    instrument = TrainingResults(MadeContext(folder=tmp_path))

    missing = ask(instrument, "abort-training")
    first = ask(instrument, "report-training", REPORT)
    aborting = ask(instrument, "abort-training")
    second = ask(instrument, "report-training", REPORT)

    assert missing.status == 404
    assert (first, second) == ({"abort": ""}, {"abort": "aborted by token ops"})
    assert aborting == {"aborting": True}
