"""The model of a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.operating.twin import Hardware, Situation, is_advised_to_move, twin_of

CPUS = Hardware(sockets=2, cores=96, max_watts_per_socket=500)
GPUS = Hardware(2, 96, 500, has_gpu=True, gpus=4, max_watts_per_gpu=700)


@pytest.mark.parametrize(
    ("hardware", "situation", "cooling", "headroom"),
    [
        (CPUS, {}, 20, 80),
        (CPUS, {"cpu_cap_pct": 60}, 12, 70.4),
        (CPUS, {"cpu_cap_pct": -1}, 20, 80),
        (CPUS, {"ambient_celsius": 20}, 20, 80),
        (CPUS, {"ambient_celsius": 30}, 25, 75),
        (CPUS, {"ambient_celsius": 500}, 100, 0),
        (GPUS, {}, 76, 24),
        (GPUS, {"gpu_cap_pct": 50}, 48, 39),
        (Hardware(gpus=4, max_watts_per_gpu=700), {}, 0, 100),
        (Hardware(), {}, 0, 100),
    ],
)
def test_power_and_warmth_are_stress_of_cooling_and_leave_headroom(
    hardware, situation, cooling, headroom
):
    twin = twin_of(hardware, Situation("performance", **situation))

    assert twin.cooling_stress == pytest.approx(cooling)
    assert twin.headroom == pytest.approx(headroom)
    assert twin.pue == pytest.approx(1.05 + 0.35 * cooling / 100)


@pytest.mark.parametrize(
    ("situation", "stress"),
    [
        ({}, 0),
        ({"power_watts": 25_000}, 50),
        ({"power_watts": 90_000}, 100),
        ({"power_watts": 90_000, "capacity_watts": 900_000}, 10),
    ],
)
def test_power_by_capacity_is_stress_of_the_supply(situation, stress):
    assert twin_of(CPUS, Situation("eco", **situation)).psu_stress == pytest.approx(stress)


@pytest.mark.parametrize(
    ("hardware", "density"),
    [(CPUS, 50), (GPUS, 50), (Hardware(cores=500), 100), (Hardware(cores=192, gpus=8), 100)],
)
def test_density_is_by_cores_and_by_gpus_if_there_are_any(hardware, density):
    assert twin_of(hardware, Situation("eco")).density == density


@pytest.mark.parametrize(
    ("profile", "draining", "expected"),
    [
        ("performance", False, "performance"),
        ("eco", False, "eco"),
        ("odd", False, "unknown"),
        ("performance", True, "draining"),
        ("odd", True, "draining"),
    ],
)
def test_draining_comes_before_the_profile(profile, draining, expected):
    assert twin_of(CPUS, Situation(profile, draining)).schedulable_class == expected


@pytest.mark.parametrize(
    ("situation", "workload_class", "movable", "advised"),
    [
        ({"power_watts": 35_000}, "standard", True, False),
        ({"power_watts": 35_001}, "standard", True, True),
        ({"power_watts": 35_001}, "performance", True, False),
        ({"power_watts": 35_001}, "standard", False, False),
        ({"ambient_celsius": 120}, "standard", True, False),
        ({"ambient_celsius": 121}, "standard", True, True),
        ({"is_draining": True}, "standard", True, True),
        ({"is_draining": True}, "performance", True, True),
        ({"is_draining": True}, "standard", False, False),
    ],
)
def test_workloads_that_may_move_are_advised_to_leave_a_stressed_node(
    situation, workload_class, movable, advised
):
    twin = twin_of(CPUS, Situation("eco", **situation))

    assert is_advised_to_move(twin, workload_class, reschedulable=movable) is advised


@pytest.mark.parametrize(
    ("situation", "pressure"),
    [
        ({"power_watts": 25_000}, "low"),
        ({"power_watts": 25_001}, "medium"),
        ({"power_watts": 35_000}, "medium"),
        ({"power_watts": 35_001}, "high"),
        ({"ambient_celsius": 80}, "low"),
        ({"ambient_celsius": 81}, "medium"),
        ({"ambient_celsius": 121}, "high"),
        ({"is_draining": True}, "high"),
    ],
)
def test_the_pressure_to_move_grows_with_the_larger_stress(situation, pressure):
    assert twin_of(CPUS, Situation("eco", **situation)).pressure == pressure


amounts = st.floats(0, 1e9)


@given(st.builds(Hardware, max_watts_per_socket=amounts, max_watts_per_gpu=amounts), amounts)
def test_every_score_is_a_percentage(hardware, watts):
    twin = twin_of(hardware, Situation("eco", power_watts=watts))

    for value in (twin.headroom, twin.cooling_stress, twin.psu_stress, twin.density):
        assert 0 <= value <= 100
