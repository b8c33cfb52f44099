import pytest

from temper_plugin_trainer.sampling import SampledInterval, ThreadCounters
from temper_plugin_trainer.training.load_verdict import ObservedLoad, load_problems


def interval(cpus=1.0, waiting=0.0, sleeps=50):
    used = ThreadCounters(int(cpus * 0.25e9), int(waiting * 0.25e9), 100, sleeps)
    return SampledInterval(0.25, used, 4)


def problems(*intervals, **more):
    return load_problems(ObservedLoad(intervals, asked_s=10, **more))


def test_a_steady_load_with_wake_ups_is_representative():
    assert problems(*[interval()] * 20) == ()


@pytest.mark.parametrize(
    ("intervals", "more", "problem"),
    [
        ([interval()] * 4, {}, "too short: 1.0 s with 4 intervals"),
        ([interval(0.001)] * 20, {}, "idle: 0.001 CPUs"),
        ([interval(1.0)] * 12 + [interval(0.1)] * 12, {}, "not steady"),
        ([interval(0.1, sleeps=1)] * 20, {}, "too few wake-ups: 20"),
        ([interval()] * 20, {"unseen_cpus": 1.0}, "50 % of the CPU time was of threads"),
        ([interval()] * 20, {"is_interrupted": True}, "interrupted after 5.0 s of 10 s"),
        ([interval()] * 20, {"is_ended": True}, "the program ended after 5.0 s of 10 s"),
    ],
)
def test_a_load_that_is_not_representative_is_told_with_its_numbers(intervals, more, problem):
    (told,) = problems(*intervals, **more)

    assert told.startswith(problem)


def test_a_program_that_only_computes_needs_no_wake_ups():
    assert problems(*[interval(1.0, sleeps=0)] * 20) == ()


def test_a_starved_program_that_computes_needs_no_wake_ups():
    assert problems(*[interval(0.1, waiting=0.9, sleeps=0)] * 20) == ()


def test_a_neighbour_that_takes_cpu_time_away_does_not_make_a_load_unsteady():
    assert problems(*[interval(1.0)] * 12, *[interval(0.3, waiting=0.7)] * 12) == ()
