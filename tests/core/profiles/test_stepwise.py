"""Work in steps: how much of it is done at once."""

import itertools

import pytest

from temper_core.profiles.stepwise import StepwiseTask, all_of


def counting(done, most):
    for number in range(most):
        done.append(number)
        yield
    return "all"


def test_all_steps_are_done_at_once_by_those_who_wait():
    assert all_of(counting([], 3)) == "all"


def test_steps_are_done_until_the_time_is_up_and_the_next_call_goes_on():
    done = []
    task = StepwiseTask(lambda: counting(done, 5), 2, itertools.count().__next__)

    counts = []
    results = [(task.advance(), task.is_under_way, counts.append(len(done))) for _ in range(3)]

    assert counts == [2, 4, 5]
    assert [result[:2] for result in results] == [(None, True), (None, True), ("all", False)]


def test_one_step_is_done_however_late_it_is():
    done = []
    task = StepwiseTask(lambda: counting(done, 5), 0)

    task.advance()

    assert done == [0]


@pytest.mark.parametrize("ending", ["raise", "restart"])
def test_steps_that_raise_or_are_given_up_begin_anew(ending):
    done = []

    def steps():
        yield from counting(done, 1)
        if ending == "raise":
            raise RuntimeError("odd")
        yield

    task = StepwiseTask(steps, 0)
    task.advance()
    if ending == "raise":
        with pytest.raises(RuntimeError, match="odd"):
            task.advance()
    else:
        task.restart()

    assert not task.is_under_way
    task.advance()
    assert done == [0, 0]
