import pytest
from attrs import evolve

from temper_plugin_trainer.refining.guards import Guards
from temper_plugin_trainer.refining.trial_door import Look

ARM = "the whole profile"
USUAL = Look("1", "enforcing", "", "1.1.4", frozenset({"old of shop"}), 0.4)


@pytest.fixture
def guards():
    made = Guards("enforcing", more_waits=0.5)
    made.learn(USUAL)
    return made


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"mode": "safe_mode", "why": "ejected"}, "the agent is in safe_mode (ejected)"),
        ({"mode": "observe_only"}, "the agent is in observe_only"),
    ],
)
def test_what_the_baseline_did_not_have_ends_a_trial(guards, changed, why):
    assert why in guards.judged(evolve(USUAL, **changed), ARM)


@pytest.mark.parametrize("changed", [{}, {"mode": "reloading"}, {"waits": 0.9}, {"waits": 0.0}])
def test_the_usual_state_ends_none(guards, changed):
    assert not guards.judged(evolve(USUAL, at="2", **changed), ARM)
    assert not guards.judged(evolve(USUAL, at="3", **changed), ARM)


def test_a_violation_must_be_in_two_observations_in_a_row(guards):
    stray = evolve(USUAL, violations=frozenset({"old of shop", "new of web"}))
    other = evolve(USUAL, violations=frozenset({"other of web"}))

    assert not guards.judged(evolve(stray, at="2"), ARM)
    assert not guards.judged(evolve(stray, at="2"), ARM), "the same observation counts once"
    assert not guards.judged(evolve(other, at="3"), ARM)
    assert not guards.judged(evolve(stray, at="4"), ARM)
    assert guards.judged(evolve(stray, at="5"), ARM) == "violation: new of web"
    assert not guards.judged(evolve(stray, at="6"), ARM), "the next trial begins anew"


def test_observations_of_another_arm_between_two_count_for_that_arm(guards):
    stray = evolve(USUAL, violations=frozenset({"new of web"}), waits=1.2)
    guards.judged(evolve(stray, at="2"), ARM)

    assert not guards.judged(evolve(USUAL, at="3"), "the tier alone")
    assert guards.judged(evolve(stray, at="4"), ARM) == "violation: new of web"


def test_others_must_wait_in_two_observations_in_a_row(guards):
    late = evolve(USUAL, waits=1.2)

    assert not guards.judged(evolve(late, at="2"), ARM)
    assert not guards.judged(evolve(late, at="2"), ARM), "the same observation counts once"
    assert not guards.judged(evolve(USUAL, at="3"), ARM)
    assert not guards.judged(evolve(late, at="4"), ARM)
    assert "other pods wait for 1.20 CPUs" in guards.judged(evolve(late, at="5"), ARM)
