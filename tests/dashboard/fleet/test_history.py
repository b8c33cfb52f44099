"""The history of a node, from a real Prometheus with generated series."""

import json
import time

import pytest

from deploy.monitoring.queries import check_names
from temper_core import MachineError
from temper_plugin_dashboard.fleet.history import QUERIES, History
from temper_prometheus.access import Access
from tests.rightsizer.fleet_series import Series, make_blocks, serving

NODE = 'n"1\\'


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    series = Series(int(time.time()) - 60)
    instance = NODE.replace("\\", "\\\\").replace('"', '\\"')
    for name, share in ((instance, 0.25), ("n2", 0.75)):
        waited = {"resource": "cpu", "kind": "some", "instance": name}
        series.counter("temper_pressure_seconds_total", share, **waited)
        series.counter("temper_tier_cpu_seconds_total", 8 * share, tier="background", instance=name)
        series.counter("temper_tier_cpu_seconds_total", 5.0, tier="high", instance=name)
        series.gauge("temper_lint_violation", 2, invariant="rt_hog", instance=name)
        series.gauge("temper_lint_violation", 1, invariant="starvation", instance=name)
    make_blocks(folder, series.lines())
    with serving(folder) as address:
        yield History(Access(address), lambda: series.now)


@pytest.mark.parametrize("hours", [1, 6, 24])
def test_a_node_has_its_own_values_at_equal_times(history, hours):
    found = history.of(NODE, hours)

    assert {len(column) for column in found.values()} == {len(found["at"])}
    assert len(found["at"]) <= 121
    assert (found["at"][-1] - found["at"][0]) <= hours * 3600
    assert found["wait"][-1] == pytest.approx(0.25, rel=0.02)
    assert found["background_cpus"][-1] == pytest.approx(2.0, rel=0.02)
    assert found["violations"][-1] == 3
    json.dumps(found, allow_nan=False)


def test_times_before_the_first_sample_have_no_value(history):
    found = history.of(NODE, 24)

    assert found["wait"][0] is None
    assert found["violations"][0] is None


def test_a_node_without_series_has_none(history):
    found = history.of("n3", 1)

    assert {value for name in QUERIES for value in found[name]} == {None}


def test_a_prometheus_that_is_away_is_named():
    with pytest.raises(MachineError, match=r"Prometheus at http://127\.0\.0\.1:9: "):
        History(Access("http://127.0.0.1:9")).of(NODE, 1)


@pytest.mark.parametrize("name", QUERIES)
def test_the_agents_export_what_is_asked_for(name):
    check_names(QUERIES[name].format(at="", rate="5m").replace("{, ", "{"))
