"""The result of a climb as a document: arms with their spread, verdicts, and the price."""

import json
import statistics

import pytest
from attrs import asdict, evolve

from temper_core import fit_body
from temper_plugin_trainer.refining.arm_readings import OthersWait, ReadingsByArm
from temper_plugin_trainer.refining.climb import Reading, Visit
from temper_plugin_trainer.refining.outcome_result import result_of
from temper_plugin_trainer.refining.trial_door import Look
from temper_plugin_trainer.results.training_result import TrainingResult
from tests.trainer.refining.surfaces import GAINS, NONE, simulated
from tests.trainer.refining.test_record import SETTING


@pytest.fixture(scope="module")
def outcome():
    return simulated(1, GAINS)


def look(at, waits):
    return Look(at, "enforcing", "", "1.1.4", frozenset(), waits)


def test_the_result_has_all_trials_and_survives_json(outcome):
    result = result_of(outcome, SETTING, "shop", ReadingsByArm())

    again = fit_body(json.loads(json.dumps(asdict(result))), TrainingResult, source="", example="")
    assert again == result
    assert [trial.verdict for trial in result.trials] == [str(t.verdict) for t in outcome.trials]
    assert result.is_better
    assert result.confirmation.gain == pytest.approx(outcome.confirmation.gain)
    assert result.confirmation.low < result.confirmation.gain < result.confirmation.high
    assert result.baseline == statistics.median(outcome.calibration)
    assert "unclear: io" in result.unknown


def test_an_interval_without_bounds_has_none(outcome):
    short = evolve(outcome.trials[0], gains=outcome.trials[0].gains[:2])

    result = result_of(evolve(outcome, trials=(short,)), SETTING, "shop", ReadingsByArm())

    assert (result.trials[0].low, result.trials[0].high) == (None, None)


def test_without_a_measurement_there_is_no_number():
    nothing = evolve(simulated(1, NONE), calibration=(), trials=(), stopped="no agent")

    result = result_of(nothing, SETTING, "shop", ReadingsByArm())

    assert (result.baseline, result.noise) == (None, None)
    assert result.stopped == "no agent"


def test_each_arm_has_its_spread_and_the_waits_of_others_in_its_own_trial(outcome):
    trial, readings = outcome.trials[0], ReadingsByArm()
    candidate, incumbent = trial.candidate, trial.incumbent
    for block, (value, waits) in enumerate([(8.0, 0.5), (9.0, 0.7), (10.0, None)]):
        of_candidate = Visit(candidate, 1, block, other=incumbent.key)
        readings.add(of_candidate, Reading(value, others_wait=waits))
        readings.add(Visit(incumbent, 1, block, other=candidate.key), Reading(20.0))
        readings.add(Visit(candidate, 2, block, other=incumbent.key), Reading(99.0))
        readings.add(Visit(incumbent, 0, block), Reading(77.0))
    readings.add(of_candidate, Reading(None, "the engine was ejected"))

    first = result_of(outcome, SETTING, "shop", readings).trials[0]

    assert (first.candidate.median, first.candidate.spread) == (9.0, 2.0)
    assert first.candidate.others_wait == pytest.approx(0.6)
    assert (first.against.median, first.against.spread) == (20.0, 0.0)
    assert first.against.others_wait is None


def test_an_observation_counts_once_and_one_of_before_does_not():
    waits = OthersWait(before="1")
    for each in (look("1", 9.0), look("2", 1.0), look("2", 1.0), look("3", 3.0)):
        waits.add(each)

    assert waits.mean == 2.0
    assert OthersWait("1").mean is None
