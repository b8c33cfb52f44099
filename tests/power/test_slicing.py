"""How the GPUs of a node could be shared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.operating.slicing import slicing_of


def intensities(low=0, medium=0, high=0):
    return ["low"] * low + ["medium"] * medium + ["high"] * high


@pytest.mark.parametrize(
    ("workloads", "mode", "kind", "per_gpu", "gain"),
    [
        ((), "time-slicing", "", 4, 10),
        (["none", ""], "time-slicing", "", 4, 10),
        (intensities(low=1), "mig", "1g.10gb", 7, 40),
        (intensities(low=2, high=1), "mig", "1g.10gb", 7, 40),
        (intensities(low=2, medium=1, high=1), "mig", "3g.40gb", 2, 25),
        (intensities(low=1, high=1), "none", "", 1, 0),
        (intensities(medium=2, high=2), "mig", "3g.40gb", 2, 25),
        (intensities(medium=2, high=3), "none", "", 1, 0),
        (intensities(low=5, medium=5), "mig", "3g.40gb", 2, 25),
        (intensities(low=6, medium=5), "mig", "1g.10gb", 7, 40),
    ],
)
def test_gpus_are_shared_by_how_hard_they_are_driven(workloads, mode, kind, per_gpu, gain):
    advised = slicing_of(workloads)

    assert (advised.mode, advised.slice_type) == (mode, kind)
    assert (advised.per_gpu, advised.gain) == (per_gpu, gain)


@pytest.mark.parametrize(
    ("count", "confidence"), [(0, 0.3), (1, 0.1), (9, 0.9), (10, 1.0), (11, 1.0)]
)
def test_more_workloads_make_it_surer(count, confidence):
    assert slicing_of(intensities(low=count)).confidence == confidence


@given(st.lists(st.sampled_from(["low", "medium", "high", "none", ""])))
def test_the_advice_has_a_reason_and_a_share_as_its_confidence(workloads):
    advised = slicing_of(workloads)

    assert advised.reason
    assert 0 <= advised.confidence <= 1
