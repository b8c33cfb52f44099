"""How often a climb is wrong, over 1,000 runs with the noise of a real benchmark."""

import pytest

from tests.trainer.refining.surfaces import (
    GAINS,
    NONE,
    OPTIMUM,
    REGRESSIONS,
    gain_of,
    simulated,
)

RUNS = 1_000


@pytest.mark.parametrize("noise_of", ["digest", "round"])
def test_without_any_effect_a_climb_finds_no_improvement_in_95_of_100_runs(noise_of):
    wrong = sum(simulated(seed, NONE, noise_of).is_better for seed in range(RUNS))

    assert wrong <= 0.05 * RUNS


@pytest.mark.parametrize("noise_of", ["digest", "round"])
def test_a_profile_that_is_worse_is_kept_in_less_than_5_of_100_runs(noise_of):
    outcomes = [simulated(seed, REGRESSIONS, noise_of) for seed in range(RUNS)]

    wrong = sum(outcome.is_better for outcome in outcomes)
    assert wrong < 0.05 * RUNS


def test_the_planted_optimum_is_found_in_most_runs_and_regressions_in_less_than_5_of_100():
    outcomes = [simulated(seed, GAINS) for seed in range(RUNS)]

    found = [gain_of(outcome.best, GAINS) for outcome in outcomes if outcome.is_better]
    steps = [trial for outcome in outcomes for trial in outcome.trials if trial.verdict == "kept"]
    worse = [
        trial
        for trial in steps
        if gain_of(trial.candidate, GAINS) < gain_of(trial.incumbent, GAINS)
    ]
    assert sum(gain == pytest.approx(OPTIMUM) for gain in found) > 0.8 * RUNS
    assert len(worse) < 0.05 * RUNS
