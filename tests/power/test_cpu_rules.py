"""The rules for CPU demand, at each threshold from both sides, with their exact reasons."""

import pytest

from temper_plugin_power.classifier.cpu import judge_cpu
from temper_plugin_power.classifier.signals import Signals


def judged(**signals):
    """Return intensity, bound and sensitivity, and the fragments of the reason."""
    judgement = judge_cpu(Signals(**signals))
    demand = judgement.demand
    return (demand.intensity, demand.bound, demand.cap_sensitivity), judgement.reasons


@pytest.mark.parametrize(
    ("util", "intensity", "reason"),
    [
        (0, "low", "cpu-intensity=low (util 0%<30%)"),
        (10, "low", "cpu-intensity=low (util 10%<30%)"),
        (29.9, "low", "cpu-intensity=low (util 30%<30%)"),
        (30, "medium", "cpu-intensity=medium (util 30%)"),
        (45, "medium", "cpu-intensity=medium (util 45%)"),
        (74.9, "medium", "cpu-intensity=medium (util 75%)"),
        (75, "high", "cpu-intensity=high (util 75%≥75%)"),
        (90, "high", "cpu-intensity=high (util 90%≥75%)"),
    ],
)
def test_utilisation_decides_the_intensity(util, intensity, reason):
    (found, _, _), reasons = judged(cpu_util_pct=util)

    assert (found, reasons[0]) == (intensity, reason)


@pytest.mark.parametrize(
    ("value", "printed"), [(0.5, "0"), (1.5, "2"), (2.5, "2"), (12.5, "12"), (13.5, "14")]
)
def test_a_percentage_is_printed_as_go_prints_it_half_to_even(value, printed):
    _, reasons = judged(cpu_util_pct=value)

    assert reasons[0] == f"cpu-intensity=low (util {printed}%<30%)"


HIGH_COMPUTE = "cpu-bound=compute, cap-sensitivity=high (util {}%>70%)"
COMPUTE = "cpu-bound=compute (high CPU, low mem pressure)"
MEMORY = "cpu-bound=memory (mem-pressure {}%>50%)"
IO = "cpu-bound=io (util <20%)"


@pytest.mark.parametrize(
    ("util", "pressure", "bound", "sensitivity", "reason"),
    [
        (19.9, 0, "io", "low", IO),
        (20, 0, "mixed", "medium", None),
        (65, 0, "mixed", "medium", None),
        (65.1, 0, "compute", "medium", COMPUTE),
        (70, 0, "compute", "medium", COMPUTE),
        (70.1, 0, "compute", "high", HIGH_COMPUTE.format(70)),
        (90, 49.9, "compute", "high", HIGH_COMPUTE.format(90)),
        (90, 50, "mixed", "medium", None),
        (90, 50.1, "mixed", "medium", None),
        (40, 50, "mixed", "medium", None),
        (40, 50.1, "memory", "low", MEMORY.format(50)),
        (59.9, 68, "memory", "low", MEMORY.format(68)),
        (60, 68, "mixed", "medium", None),
        (10, 50, "io", "low", IO),
        (10, 68, "memory", "low", MEMORY.format(68)),
    ],
)
def test_the_first_rule_that_matches_decides_the_bound(util, pressure, bound, sensitivity, reason):
    (_, *found), reasons = judged(cpu_util_pct=util, memory_pressure_pct=pressure)

    assert found == [bound, sensitivity]
    assert reasons[1:] == (() if reason is None else (reason,))


@pytest.mark.parametrize(("util", "pressure"), [(90, 0), (40, 80), (5, 0)])
def test_a_dominant_gpu_comes_before_every_other_bound(util, pressure):
    (_, *found), reasons = judged(
        cpu_util_pct=util, memory_pressure_pct=pressure, is_gpu_dominant=True
    )

    assert found == ["mixed", "low"]
    assert reasons[1:] == ("cpu-bound=mixed (GPU dominant)",)


def test_a_utilisation_that_nobody_knows_leaves_everything_medium():
    (intensity, bound, sensitivity), reasons = judged(cpu_util_pct=None, memory_pressure_pct=90)

    assert (intensity, bound, sensitivity) == ("medium", "mixed", "medium")
    assert reasons == ("cpu-util unknown (no request, no limit)",)


TO_COMPUTE = "kepler override: cpu-bound=compute (energy ratio {}>0.70)"
TO_MEMORY = "kepler override: cpu-bound=memory (mem-energy ratio {}>0.40)"


@pytest.mark.parametrize(
    ("util", "compute", "memory", "bound", "sensitivity", "reason"),
    [
        (40, 0.70, 0, "mixed", "medium", None),
        (40, 0.701, 0, "compute", "high", TO_COMPUTE.format("0.70")),
        (40, 0.80, 0.9, "compute", "high", TO_COMPUTE.format("0.80")),
        (40, 0, 0.40, "mixed", "medium", None),
        (40, 0, 0.45, "memory", "low", TO_MEMORY.format("0.45")),
        (68, 0.80, 0, "compute", "medium", None),
        (68, 0.80, 0.45, "memory", "low", TO_MEMORY.format("0.45")),
    ],
)
def test_energy_overrides_another_bound(util, compute, memory, bound, sensitivity, reason):
    (_, *found), reasons = judged(
        cpu_util_pct=util,
        cpu_bound_ratio=compute,
        memory_bound_ratio=memory,
        has_kepler=True,
        total_energy_j=1,
    )

    assert found == [bound, sensitivity]
    assert [each for each in reasons if "kepler" in each] == ([reason] if reason else [])


def test_energy_that_agrees_on_memory_adds_no_reason():
    _, reasons = judged(
        cpu_util_pct=40,
        memory_pressure_pct=80,
        memory_bound_ratio=0.9,
        has_kepler=True,
        total_energy_j=1,
    )

    assert reasons[1:] == (MEMORY.format(80),)


@pytest.mark.parametrize(
    "energy", [{"has_kepler": False, "total_energy_j": 5}, {"has_kepler": True}]
)
def test_ratios_without_energy_override_nothing(energy):
    (_, bound, _), _ = judged(cpu_util_pct=40, cpu_bound_ratio=0.9, **energy)

    assert bound == "mixed"


def test_zones_that_are_shared_by_cpu_time_say_nothing_and_this_is_told():
    (_, bound, _), reasons = judged(
        cpu_util_pct=40,
        cpu_bound_ratio=0.9,
        has_kepler=True,
        total_energy_j=9,
        is_energy_shared=True,
    )

    assert bound == "mixed"
    assert reasons[1:] == ("energy: cpu-bound unknown (zones shared by CPU time)",)


PSI_IO = "psi override: cpu-bound=io (io-pressure {}%≥20%)"
PSI_MEMORY = "psi override: cpu-bound=memory (memory-pressure {}%≥10%)"
COUNTERS_MEMORY = "counter override: cpu-bound=memory (ipc {}<0.70, llc-mpki {}≥10.0)"
COUNTERS_COMPUTE = "counter override: cpu-bound=compute (ipc {}≥1.20, llc-mpki {}<5.0)"


@pytest.mark.parametrize(
    ("evidence", "bound", "sensitivity", "reasons"),
    [
        ({"io_pressure": 0.199}, "mixed", "medium", []),
        ({"io_pressure": 0.20}, "io", "low", [PSI_IO.format(20)]),
        ({"io_pressure": 0.31}, "io", "low", [PSI_IO.format(31)]),
        ({"memory_stall": 0.099}, "mixed", "medium", []),
        ({"memory_stall": 0.10}, "memory", "low", [PSI_MEMORY.format(10)]),
        (
            {"io_pressure": 0.5, "memory_stall": 0.5},
            "memory",
            "low",
            [PSI_IO.format(50), PSI_MEMORY.format(50)],
        ),
        (
            {"ipc": 0.42, "llc_mpki": 18},
            "memory",
            "low",
            [COUNTERS_MEMORY.format("0.42", "18.0")],
        ),
        ({"ipc": 0.69, "llc_mpki": 10}, "memory", "low", [COUNTERS_MEMORY.format("0.69", "10.0")]),
        ({"ipc": 0.70, "llc_mpki": 10}, "mixed", "medium", []),
        ({"ipc": 0.69, "llc_mpki": 9.9}, "mixed", "medium", []),
        (
            {"ipc": 1.20, "llc_mpki": 4.9},
            "compute",
            "high",
            [COUNTERS_COMPUTE.format("1.20", "4.9")],
        ),
        ({"ipc": 1.19, "llc_mpki": 4.9}, "mixed", "medium", []),
        ({"ipc": 1.20, "llc_mpki": 5}, "mixed", "medium", []),
        ({"ipc": 2.0}, "mixed", "medium", []),
        (
            {"io_pressure": 0.2, "ipc": 1.5, "llc_mpki": 1},
            "compute",
            "high",
            [PSI_IO.format(20), COUNTERS_COMPUTE.format("1.50", "1.0")],
        ),
    ],
)
def test_better_evidence_than_energy_overrides_and_the_later_counts(
    evidence, bound, sensitivity, reasons
):
    (_, *found), why = judged(cpu_util_pct=40, **evidence)

    assert found == [bound, sensitivity]
    assert list(why[1:]) == reasons


def test_a_dominant_gpu_leaves_better_evidence_aside():
    (_, *found), reasons = judged(cpu_util_pct=40, is_gpu_dominant=True, io_pressure=0.9)

    assert found == ["mixed", "low"]
    assert reasons[1:] == ("cpu-bound=mixed (GPU dominant)",)
