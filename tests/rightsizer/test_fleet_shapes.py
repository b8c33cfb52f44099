"""The shapes of the backtest through a real Prometheus: the verdict is that of the node."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.backtest.shapes import HOUR_S, SHAPES, WINDOW_S
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from tests.patience import PATIENCE_S
from tests.rightsizer.fleet_series import Series, deployed, make_blocks, serving

TEMPER = str(Path(sys.executable).with_name("temper"))
BEGINS_AT_S, ENDS_AT_S = 7 * HOUR_S, 14 * HOUR_S
LEAST_EXPORTED = 0.25
BURSTS = {"garbage collector", "bursty pool"}
"""They are busy for one window at a time, and a rate is taken over four."""
NAMES = {shape.name: f"shape-{number}" for number, shape in enumerate(SHAPES)}


def samples_of(shape):
    return [
        sample for _, sample in shape.samples(ENDS_AT_S) if BEGINS_AT_S <= sample.at < ENDS_AT_S
    ]


def add(series, shape):
    """Add what a kubelet and an agent would have exported of *shape*."""
    totals = {}
    for sample in samples_of(shape):
        at = series.now - ENDS_AT_S + sample.at + WINDOW_S
        pod = f"{NAMES[shape.name]}-7c9f-{sample.replica}"
        labels = {"namespace": "shapes", "pod": pod, "container": "app"}
        totals[pod] = totals.get(pod, 0.0) + sample.cpu * sample.seconds
        used, memory = f"{totals[pod]:.4f}", sample.memory_bytes
        series.add("container_cpu_usage_seconds_total", labels, {at: used})
        series.add("container_memory_working_set_bytes", labels, {at: memory})
        hottest = max((used for _, used in sample.threads), default=0.0)
        if hottest >= LEAST_EXPORTED:
            series.add("temper_container_hottest_thread_cpus", labels, {at: f"{hottest:.4f}"})
    for pod in totals:
        deployed(series, "shapes", pod, NAMES[shape.name])


def on_node(shape):
    """Return the advice of an agent that saw the last six hours of all replicas."""
    demand = IntervalDemand()
    for sample in samples_of(shape):
        if sample.at >= ENDS_AT_S - 6 * HOUR_S:
            demand.add(sample.window(), sample.seconds)
            demand.memory.add(sample.memory_bytes, sample.seconds)
    return advise(demand, Resources())


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    series = Series(int(time.time()))
    for shape in SHAPES:
        add(series, shape)
    make_blocks(folder, series.lines())
    with serving(folder) as address:
        command = [TEMPER, "rightsize", "--prometheus", address, "--output", "json"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=PATIENCE_S
        )
    return {row["owner"]: row for row in json.loads(done.stdout)["containers"]}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_gets_its_verdict_from_a_prometheus(rows, shape):
    row = rows[f"Deployment/{NAMES[shape.name]}"]

    assert row["verdict"] == shape.verdict


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_its_cpu_request_is_about_that_of_an_agent(rows, shape):
    wanted = on_node(shape).recommended.cpu_request_millis
    found = rows[f"Deployment/{NAMES[shape.name]}"]["recommended"]["cpu_request_millis"]

    if shape.name in BURSTS:
        assert wanted / 2 < found < 2.5 * wanted
    else:
        assert found == pytest.approx(wanted, rel=0.1)
