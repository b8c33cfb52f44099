"""What a facility tells, by a real Prometheus, and what follows for the model of a node."""

from datetime import UTC, datetime

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_core import DocumentError, MachineError
from temper_plugin_power.controller.chosen import facility_asking
from temper_plugin_power.controller.last_facility import LastFacility
from temper_plugin_power.controller.node_plans import plan_nodes
from temper_plugin_power.controller.tallies import Tallies
from temper_plugin_power.extender.places import NodeKinds, Place, TwinReport
from temper_plugin_power.operating.facility import Facility, Supply, rack_totals, supply_of
from temper_plugin_power.operating.twin import Hardware, node_watts
from temper_plugin_power.placing.views import cluster_view
from temper_plugin_power.settings.classifier import ClassifierSettings
from temper_plugin_power.settings.operator import FacilitySettings, OperatorSettings
from temper_plugin_power.settings.power import PowerSettings, power_settings
from tests.power.test_measuring import exporting
from tests.power.test_node_plans import a_node, seen

AMBIENT = "datacenter_ambient_temperature_celsius"
IT, COOLING = "datacenter_total_it_power_watts", "datacenter_cooling_power_watts"
ON = FacilitySettings(enabled=True)


def settings(address, facility=ON):
    return PowerSettings(
        classifier=ClassifierSettings(prometheus_url=address),
        operator=OperatorSettings(facility=facility),
    )


def told(folder, fill, facility=ON):
    """Return what the facility tells with the series of *fill*, and what was counted."""
    tallies = Tallies()
    with exporting(folder, fill) as address:
        ask = facility_asking(settings(address, facility), tallies)
        return ask(), tallies.page([]).decode()


def test_temperatures_are_averaged_and_powers_added(tmp_path):
    def fill(series):
        for aisle, celsius, watts in (("a", 24, 30_000), ("b", 27.2, 10_049)):
            series.gauge(AMBIENT, celsius, aisle=aisle)
            series.gauge(IT, watts, aisle=aisle)
        series.gauge(COOLING, 12_000)

    facility, page = told(tmp_path, fill)

    assert facility == Facility(25.5, 40_000, 12_000)
    assert facility.pue == 1.3
    assert 'temper_power_query_seconds_count{signal="ambient"} 1.0' in page


def test_a_cooling_zone_has_the_average_of_its_own_series(tmp_path):
    def fill(series):
        for zone, sensor, celsius in (("a", 1, 20), ("a", 2, 22), ("b", 1, 35), ("c", 1, 101)):
            series.gauge(AMBIENT, celsius, zone=zone, sensor=str(sensor))
        series.gauge(AMBIENT, 30, sensor="hall")

    facility, _ = told(tmp_path, fill)

    assert facility.zone_celsius == {"a": 21.0, "b": 35.0}
    assert facility.ambient_celsius == 41.5


def test_without_a_label_no_cooling_zone_is_asked_for(tmp_path):
    def fill(series):
        series.gauge(AMBIENT, 25, zone="a")

    facility, page = told(tmp_path, fill, evolve(ON, ambient_zone_label=""))

    assert facility == Facility(25)
    assert 'signal="ambient_by_zone"' not in page


def test_what_is_not_exported_is_not_known(tmp_path):
    facility, _ = told(tmp_path, lambda series: series.gauge(IT, 500))

    assert facility == Facility(None, 500, None)
    assert facility.pue is None


def test_an_empty_name_is_not_asked_for(tmp_path):
    def fill(series):
        series.gauge(AMBIENT, 25)
        series.gauge(IT, 500)

    facility, page = told(tmp_path, fill, evolve(ON, ambient_metric=""))

    assert facility == Facility(None, 500, None)
    assert 'signal="ambient"' not in page


@pytest.mark.parametrize(("celsius", "is_known"), [(-1, 0), (0, 1), (100, 1), (101, 0)])
def test_a_temperature_that_no_room_has_is_not_known(tmp_path, celsius, is_known):
    facility, _ = told(tmp_path, lambda series: series.gauge(AMBIENT, celsius))

    assert (facility.ambient_celsius is not None) == is_known


def test_a_negative_power_is_not_known(tmp_path):
    facility, _ = told(tmp_path, lambda series: series.gauge(IT, -1))

    assert facility.it_watts is None


def test_a_prometheus_that_is_away_is_an_error_and_counted():
    tallies = Tallies()
    ask = facility_asking(settings("http://127.0.0.1:1"), tallies)

    with pytest.raises(MachineError):
        ask()

    failures = 'temper_power_query_failures_total{signal="ambient"} 3.0'
    assert failures in tallies.page([]).decode()


@pytest.mark.parametrize(
    "given", [settings("", ON), settings("http://a", FacilitySettings(enabled=False))]
)
def test_without_a_prometheus_or_by_default_nothing_is_asked(given):
    assert facility_asking(given, Tallies()) is None


@pytest.mark.parametrize(
    ("it", "cooling", "pue"),
    [(1000, 500, 1.5), (1000, 0, 1.0), (3000, 1000, 1.33), (0, 10, None), (None, 10, None)],
)
def test_the_pue_is_measured_by_both_powers(it, cooling, pue):
    assert Facility(None, it, cooling).pue == pue


@pytest.mark.parametrize(
    ("it", "rack", "capacity", "supply"),
    [
        (90_000, 1, 0, Supply(1, 50_000)),
        (90_000, 1, 900_000, Supply(1, 50_000)),
        (90_000, 0, 0, Supply(0, 50_000)),
        (90_000, 0, 900_000, Supply(90_000, 900_000)),
        (None, 0, 900_000, Supply(0, 50_000)),
    ],
)
def test_the_supply_is_that_of_the_rack_then_of_all_machines(it, rack, capacity, supply):
    assert supply_of(Facility(None, it), rack, capacity) == supply


def test_racks_are_added_up_and_nodes_without_one_are_left_out():
    assert rack_totals([("a", 100), ("b", 1), ("a", 50), ("", 7)]) == {"a": 150, "b": 1}


@pytest.mark.parametrize(
    ("value", "steady"), [(24.74, 24.5), (24.76, 25.0), (-0.2, 0.0), (None, None)]
)
def test_a_temperature_counts_in_half_degrees(value, steady):
    assert Facility(value).steady.ambient_celsius == steady


@given(st.floats(1, 1e12))
def test_powers_keep_three_digits(watts):
    steady = Facility(None, watts).steady.it_watts

    assert steady == pytest.approx(watts, rel=0.005)
    assert len(f"{steady:.6e}".partition("e")[0].replace(".", "").rstrip("0")) <= 3


CPUS = Hardware(sockets=2, max_watts_per_socket=200)
GPUS = evolve(CPUS, gpus=4, max_watts_per_gpu=500)


@pytest.mark.parametrize(
    ("hardware", "cpu_pct", "gpu_pct", "watts"),
    [
        (CPUS, 100, 100, 400),
        (CPUS, 60, 100, 240),
        (CPUS, 0, 0, 400),
        (CPUS, -1, 100, 400),
        (evolve(GPUS, has_gpu=True), 100, 50, 1400),
        (GPUS, 100, 50, 400),
    ],
)
def test_the_power_of_a_node_follows_from_its_caps(hardware, cpu_pct, gpu_pct, watts):
    assert node_watts(hardware, cpu_pct, gpu_pct) == watts


def twin_of_node(facility, settings, rack=""):
    """Return the twin of the eco node of two in *rack*, each of 400 W."""
    situation = seen(2)
    labels = {"joulie.io/rack": rack} if rack else {}
    nodes = [a_node(f"n{number}", **labels) for number in range(2)]
    plans = plan_nodes(
        evolve(situation, nodes=nodes, facility=facility), OperatorSettings(facility=settings)
    )
    return plans.nodes[1].twin


def test_warmth_is_cooling_stress_of_every_node():
    mild, warm = (twin_of_node(Facility(celsius), ON) for celsius in (20, 40))

    assert warm.cooling_stress == pytest.approx(mild.cooling_stress + 10)
    assert warm.headroom < mild.headroom


@pytest.mark.parametrize(("zone", "stress"), [("a", 10), ("b", 5), ("", 5)])
def test_warmth_is_that_of_the_cooling_zone_else_of_all(zone, stress):
    label = {"joulie.io/cooling-zone": zone} if zone else {}
    facility = Facility(30, zone_celsius={"a": 40})

    around = evolve(seen(1), nodes=[a_node("n0", **label)], facility=facility)
    without = plan_nodes(evolve(around, facility=Facility(20)), OperatorSettings()).nodes[0]
    plan = plan_nodes(around, OperatorSettings()).nodes[0]

    assert plan.twin.cooling_stress - without.twin.cooling_stress == pytest.approx(stress)


@pytest.mark.parametrize(
    ("settings", "rack", "stress"),
    [
        (ON, "r1", (400 + 240) / 500),
        (ON, "", 0),
        (FacilitySettings(), "r1", 0),
        (evolve(ON, psu_capacity_watts=100_000.0), "", 40),
    ],
)
def test_the_stress_of_the_supply_is_of_the_rack_or_of_all_machines(settings, rack, stress):
    twin = twin_of_node(Facility(None, 40_000), settings, rack)

    assert twin.psu_stress == pytest.approx(stress)


@pytest.mark.parametrize(("status", "pue"), [({}, None), ({"measuredPUE": 2}, 2.0)])
def test_only_a_measured_pue_counts_for_placement(status, pue):
    twin = {
        "kind": "NodeTwin",
        "metadata": {"name": "n1"},
        "status": {"estimatedPUE": 1.3, **status},
    }

    seen_by_view = cluster_view([twin], datetime.now(UTC)).nodes["n1"].twin
    place = Place("n1", TwinReport(seen_by_view))
    place.reckon(NodeKinds())

    assert seen_by_view.measured_pue == place.figures.kind.measured_pue == pue


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


def test_what_was_told_last_holds_for_three_intervals():
    clock = Clock()
    last = LastFacility(30.0, clock)

    last.told(Facility(25))
    last.told(None)
    clock.now_s = 90.0
    kept = last.current()
    clock.now_s = 90.1

    assert kept == Facility(25)
    assert last.current() == Facility()


def test_before_the_first_answer_nothing_is_known():
    assert LastFacility(30.0).current() == Facility()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('ambient_metric = "a b"', "ambient_metric"),
        ('it_power_metric = "sum(x)"', "it_power_metric"),
        ("psu_capacity_watts = -1.0", "psu_capacity_watts"),
        ('ambient_zone_label = "a-b"', "ambient_zone_label"),
        ('poll = "0s"', "poll"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, line, problem):
    path = tmp_path / "agent.toml"
    path.write_text(f"[plugins.power.operator.facility]\n{line}\n")

    with pytest.raises(DocumentError, match=f"operator.facility.{problem}"):
        power_settings(path)
