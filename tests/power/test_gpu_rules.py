"""The rules for GPU demand, at each threshold from both sides, with their exact reasons."""

import pytest

from temper_plugin_power.classifier.gpu import judge_gpu
from temper_plugin_power.classifier.signals import Signals


@pytest.mark.parametrize(
    ("util", "pressure", "demand", "reason"),
    [
        (0.1, 0, ("low", "mixed", "low"), "gpu-intensity=low (util 0%<25%)"),
        (15, 0, ("low", "mixed", "low"), "gpu-intensity=low (util 15%<25%)"),
        (24.9, 0, ("low", "mixed", "low"), "gpu-intensity=low (util 25%<25%)"),
        (25, 0, ("medium", "mixed", "medium"), "gpu-intensity=medium (util 25%)"),
        (40, 0, ("medium", "mixed", "medium"), "gpu-intensity=medium (util 40%)"),
        (40.1, 0, ("medium", "compute", "medium"), "gpu-intensity=medium (util 40%)"),
        (69.9, 0, ("medium", "compute", "medium"), "gpu-intensity=medium (util 70%)"),
        (70, 0, ("high", "compute", "high"), "gpu-intensity=high (util 70%≥70%)"),
        (92, 60, ("high", "compute", "high"), "gpu-intensity=high (util 92%≥70%)"),
        (92, 60.1, ("high", "memory", "medium"), "gpu-intensity=high (util 92%≥70%)"),
        (15, 61, ("low", "memory", "low"), "gpu-intensity=low (util 15%<25%)"),
    ],
)
def test_utilisation_decides_intensity_bound_and_sensitivity(util, pressure, demand, reason):
    judgement = judge_gpu(Signals(gpu_util_pct=util, memory_pressure_pct=pressure))

    found = judgement.demand
    assert (found.intensity, found.bound, found.cap_sensitivity) == demand
    assert judgement.reasons == (reason,)
    assert found.util_pct == util


@pytest.mark.parametrize(
    ("signals", "intensity"),
    [
        ({}, "none"),
        ({"has_kepler": True}, "none"),
        ({"gpu_energy_j": 9.0}, "none"),
        ({"has_kepler": True, "gpu_energy_j": 9.0}, "low"),
    ],
)
def test_gpu_energy_counts_as_gpu_work_where_kepler_is_used(signals, intensity):
    judgement = judge_gpu(Signals(**signals))

    assert judgement.demand.intensity == intensity
    assert len(judgement.reasons) == (intensity != "none")
