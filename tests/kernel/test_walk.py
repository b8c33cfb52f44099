"""The walk of examples/demo, claim by claim, on the real kernel with the real engine."""

import pytest

from tests.kernel.guest import CLAIMS, Walked


@pytest.mark.parametrize("claim", CLAIMS)
def test_on_a_real_kernel(claim: str, walked: Walked):
    outcome = walked.outcomes.get(claim)

    assert outcome is not None, f"the walk did not come to: {CLAIMS[claim]}\n{walked.output}"
    assert outcome.holds, f"not so: {CLAIMS[claim]}\n{outcome.measured}\n\n{walked.output}"


def test_the_walk_says_by_its_exit_code_whether_all_of_it_held(walked: Walked):
    all_held = all(outcome.holds for outcome in walked.outcomes.values())

    assert walked.exit_code == (0 if all_held and len(walked.outcomes) == len(CLAIMS) else 1)
