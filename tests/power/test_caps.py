"""Caps in watts, and the models of the catalogue."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.operating.caps import CapShares, caps_of, effective_cpu_pct
from temper_plugin_power.operating.catalogue import AMD, CPUS, GPUS, INTEL, cpu_model, gpu_model
from temper_plugin_power.operating.twin import Hardware

WATTS = CapShares(cpu_in_watts=True, gpu_in_watts=True)


def a_package(least, most):
    return Hardware(sockets=2, max_watts_per_socket=most, min_watts_per_socket=least)


@pytest.mark.parametrize(
    ("profile", "least", "most", "watts"),
    [
        ("performance", 100, 360, 360),
        ("performance", 100, 5001, 5000),
        ("eco", 100, 360, 120),
        ("eco", 119, 360, 120),
        ("eco", 121, 360, 121),
        ("eco", 0, 119, 119),
        ("eco", 400, 360, 360),
    ],
)
def test_a_cpu_cap_in_watts_is_within_the_range_of_a_package(profile, least, most, watts):
    caps = caps_of(profile, WATTS, a_package(least, most))

    assert caps == {"cpu": {"packagePowerCapWatts": watts}}
    assert effective_cpu_pct(caps, a_package(least, most)) == pytest.approx(100 * watts / most)


def test_without_a_known_range_a_cap_stays_a_percentage():
    assert caps_of("eco", WATTS, Hardware()) == {"cpu": {"packagePowerCapPctOfMax": 60.0}}


def test_0_percent_is_no_cap_in_watts_either():
    shares = CapShares(cpu_eco_pct=0, gpu_eco_pct=0, cpu_in_watts=True, gpu_in_watts=True)

    assert caps_of("eco", shares, a_package(1, 100)) == {}
    assert caps_of("eco", shares, Hardware(has_gpu=True, max_watts_per_gpu=300)) == {}


@pytest.mark.parametrize(
    ("profile", "least", "most", "watts"),
    [
        ("performance", 100, 700, 700),
        ("eco", 100, 700, 420),
        ("eco", 420, 700, 420),
        ("eco", 421, 700, 421),
        ("eco", 100, 0, None),
    ],
)
def test_a_gpu_cap_in_watts_stands_beside_the_percentage(profile, least, most, watts):
    hardware = Hardware(has_gpu=True, gpus=8, max_watts_per_gpu=most, min_watts_per_gpu=least)

    (kind, cap), *others = caps_of(profile, WATTS, hardware).items()

    assert (kind, others) == ("gpu", [])
    assert cap["powerCap"].get("capWattsPerGpu") == watts
    assert cap["powerCap"]["capPctOfMax"] == WATTS.gpu_pct(profile)


amounts = st.floats(0, 1e5)


@given(st.sampled_from(["eco", "performance"]), amounts, amounts, st.booleans())
def test_a_cap_in_watts_never_exceeds_the_device(profile, least, most, has_gpu):
    ranges = {"max_watts_per_gpu": most, "min_watts_per_gpu": least, "has_gpu": has_gpu}
    hardware = Hardware(1, 8, most, min_watts_per_socket=least, **ranges)

    caps = caps_of(profile, WATTS, hardware)

    assert caps.get("cpu", {}).get("packagePowerCapWatts", 0) <= most
    assert caps.get("gpu", {}).get("powerCap", {}).get("capWattsPerGpu", 0) <= most
    assert ("cpu" in caps) != has_gpu


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        ("AMD EPYC 9654 96-Core Processor", 360),
        ("Intel(R) Xeon(R) Platinum 8480+", 350),
        ("INTEL(R) XEON(R) PLATINUM 8380 CPU @ 2.30GHz", 270),
        ("AMD EPYC 9654P 96-Core Processor", 360),
        ("Intel(R) Xeon(R) 6980P", 500),
        ("AMD EPYC 9135 16-Core Processor", None),
        ("", None),
    ],
)
def test_a_processor_is_known_by_its_name(name, watts):
    found = cpu_model(["", name])

    assert (found and found.tdp_watts) == watts


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        ("NVIDIA-H100-80GB-HBM3", 700),
        ("NVIDIA H100 PCIe", 350),
        ("NVIDIA-A100-SXM4-80GB", 400),
        ("NVIDIA A100-PCIE-40GB", 250),
        ("NVIDIA A100 80GB PCIe", 300),
        ("NVIDIA-L40S", 350),
        ("NVIDIA-L4", 72),
        ("NVIDIA-H200", 700),
        ("NVIDIA-H200-NVL", 600),
        ("NVIDIA H100 NVL", 400),
        ("A", None),
    ],
)
def test_a_gpu_is_known_by_its_product(name, watts):
    found = gpu_model([name])

    assert (found and found.board_watts) == watts


@pytest.mark.parametrize(("models", "find"), [(CPUS, cpu_model), (GPUS, gpu_model)])
def test_every_model_is_found_by_its_own_name(models, find):
    assert {name: find([name]) for name in models} == models


def table_of_sources():
    """Return the rows that a script has taken from the tables of both manufacturers."""
    with Path(__file__).with_name("processors.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", table_of_sources(), ids=lambda row: row["name"])
def test_a_processor_has_the_figures_of_its_manufacturers_table(row):
    found = cpu_model([row["name"]])
    figures = (found.tdp_watts, found.boost_ghz, found.cores)

    assert figures == (int(row["tdp_watts"]), float(row["boost_ghz"]), int(row["cores"]))
    assert found.source == {"amd": AMD, "intel": INTEL}[row["source"]]


def test_every_processor_was_compared_and_every_figure_names_its_source():
    compared = {cpu_model([row["name"]]) for row in table_of_sources()}

    assert set(CPUS.values()) <= compared
    assert len(table_of_sources()) == len(CPUS)
    assert all(model.source for model in (*CPUS.values(), *GPUS.values()))
