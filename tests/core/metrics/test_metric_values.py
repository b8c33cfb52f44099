import math

import pytest
from attrs import evolve
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)

from temper_core.metrics.families import FAMILIES
from temper_core.metrics.families.reading import UNOBSERVED, Per
from temper_core.metrics.scraper import Scraper
from temper_core.metrics.source import AgentCounters
from temper_core.metrics.totals import Totals
from temper_core.records.histogram import Histogram
from temper_core.records.lint import Severity, Violation
from temper_core.records.snapshots import (
    InstrumentCost,
    LayerSample,
    Observing,
    Overhead,
    PluginState,
    PodSample,
    Pressure,
    PressureLine,
    ThreadSample,
)
from temper_core.records.steering import SteeringState
from temper_core.records.tiers import LayerKind, Tier
from tests.core.server.scraping import OPENMETRICS
from tests.prometheus import promtool

WEB = {"namespace": "shop", "pod": "web"}
BATCH = {"namespace": "shop", "pod": "batch"}
STALLED = Pressure(PressureLine(0.1, 0.1, 0.1, 2_500_000), PressureLine(0, 0, 0, 1_500_000))


def a_busy_node(fakes):
    web = PodSample(
        "shop", "web", "1", Tier.CRITICAL, 12, 1.25, throttled_ratio=0.5, memory_bytes=4096,
        profile="mysql-innodb", pressure={"cpu": STALLED}, short_lived_cpu_used=0.25, run_delay=0.5,
        switches=40, throttled_s=0.75, quota_cores=2.0, unthrottled_pressure=0.125,
        profile_coverage=0.75, profile_code="expired", profile_reason="its evidence expired",
    )  # fmt: skip
    batch = PodSample(
        "shop", "batch", "2", Tier.LOW, 3, 0.5, memory_bytes=-1, switches=-1, profile_code="shape"
    )
    return fakes.a_snapshot(
        window_s=4.0,
        pods=(web, batch),
        threads=tuple(
            ThreadSample(n, 1, f"ib_worker-{n}", "mysqld", 1, 1, 0.5, 0.1, namespace="shop",
                         pod="web")
            for n in (1, 2)
        ),
        layers=(
            LayerSample("critical", LayerKind.CONFINED, (0, 1), 1.0, 0.5, 12, Tier.CRITICAL,
                        fallback_ratio=0.01, outside_ratio=0.02),
            LayerSample("open", LayerKind.OPEN, (), 0.5, None, 90),
        ),
        pressure={"cpu": STALLED, "memory": Pressure(STALLED.some)},
        pressure_events={"cpu": 3},
        overhead=Overhead(
            {"observe_user": 0.002}, 50_000_000, 70_000_000, 5.0, 0.003, 321, 17, 0.001,
            instruments={"tracer": InstrumentCost(2, 0.5, 7.5, 90_000_000, 4096, 65536)},
        ),
        observing=Observing("bpf-iter", "no kfunc", 10.0, 5.0, "over budget", 0.001, 44),
        steering=SteeringState(mode="hints", steered=5, corrected=4, kicked=3, astray=2),
        violations=(
            Violation("smt_collision", Severity.ERROR, "shop/web", "shared", "move", {}, 0.0),
        ),
        defects=("a", "b"),
    )  # fmt: skip


def make_busy(view, fakes):
    """Have *view* tell of a node on which everything happens that metrics tell of."""
    view.last = a_busy_node(fakes)
    view.counted = AgentCounters(
        reloads={"plan": 1},
        ejections={"stall": 1},
        profile_failures={"broken": 2},
        swaps={"warm": 1},
        swap_failures={"hung": 1},
        stock_seconds={"warm": Histogram().with_value(0.05)},
        plugin_failures={"linter": 3},
        events={"safe_mode_requested": 2},
    )
    view.found = (
        PluginState("linter", "0.1.0", "d", (), "active", calls=7, time_spent_s=0.5),
        PluginState("broken", "2.0", "d", (), "set_aside", "raised"),
    )
    totals = Totals()
    totals.add(view.last)
    view.summed = totals.sums
    return view


@pytest.fixture
def busy(view, fakes):
    return make_busy(view, fakes)


@pytest.fixture
def value(busy):
    """Return a series of the busy node by its name and labels; nothing where there is none."""
    text, _ = Scraper(busy, 5_000).scrape(OPENMETRICS)
    samples = [each for family in parse_openmetrics(text.decode()) for each in family.samples]

    def value(name, **labels):
        found = [each.value for each in samples if (each.name, each.labels) == (name, labels)]
        assert len(found) <= 1
        return found[0] if found else None

    return value


def test_every_family_is_told_of_where_everything_happens(busy):
    text, _ = Scraper(busy, 5_000).scrape(OPENMETRICS)

    told = {family.name for family in parse_openmetrics(text.decode()) if family.samples}
    assert told == {family.name.removesuffix("_total") for family in FAMILIES}


def test_nothing_of_the_node_is_told_before_the_first_observation(view):
    view.last = view.in_force = None

    text, _ = Scraper(view, 5_000).scrape(OPENMETRICS)

    families = {family.name: family for family in parse_openmetrics(text.decode())}
    assert families.keys() == {family.name.removesuffix("_total") for family in FAMILIES}
    for family in FAMILIES:
        if family.absent == UNOBSERVED or family.per in {Per.POD, Per.LAYER}:
            assert not families[family.name.removesuffix("_total")].samples


def test_what_is_not_counted_of_a_pod_has_no_series(value):
    batch = {"namespace": "shop", "pod": "batch"}

    assert value("temper_pod_threads", **batch) == 3
    assert value("temper_pod_switches_total", **batch) is None
    assert value("temper_pod_memory_bytes", **batch) is None


def test_a_pod_is_told_of(value):
    assert value("temper_pod_info", **WEB, tier="critical", profile="mysql-innodb") == 1
    assert value("temper_pod_cpus_used", **WEB) == 1.25
    assert value("temper_pod_cpu_seconds_total", **WEB) == 5
    assert value("temper_pod_run_delay_seconds_total", **WEB) == 2
    assert value("temper_pod_short_lived_cpu_seconds_total", **WEB) == 1
    assert value("temper_pod_switches_total", **WEB) == 40
    assert value("temper_pod_threads", **WEB) == 12
    assert value("temper_pod_memory_bytes", **WEB) == 4096
    assert value("temper_pod_throttled_ratio", **WEB) == 0.5
    assert value("temper_pod_throttled_seconds_total", **WEB) == 0.75
    assert value("temper_pod_quota_cores", **WEB) == 2
    assert value("temper_pod_unthrottled_pressure_ratio", **WEB) == 0.125
    stalled = {"name": "temper_pod_pressure_seconds_total", "resource": "cpu", **WEB}
    assert value(**stalled, kind="some") == 2.5
    assert value(**stalled, kind="full") == 1.5


def test_what_is_not_known_of_a_pod_has_no_series(value):
    assert value("temper_pod_info", **BATCH, tier="low", profile="") == 1
    assert value("temper_pod_quota_cores", **BATCH) is None
    assert value("temper_pod_unthrottled_pressure_ratio", **BATCH) is None
    assert value("temper_pod_wait_seconds_count", **BATCH) is None


def test_threads_are_told_by_name(value):
    name = "temper_pod_thread_cpu_seconds_total"

    assert value(name, **WEB, thread="ib_worker-*") == 4
    assert value(name, **WEB, thread="rest") == 1
    assert value(name, **BATCH, thread="rest") == 2
    delay = "temper_pod_thread_run_delay_seconds_total"
    assert value(delay, **WEB, thread="ib_worker-*") == pytest.approx(0.8)
    assert value(delay, **WEB, thread="rest") == pytest.approx(1.2)


def test_tiers_add_up_their_pods(value):
    assert value("temper_tier_cpus_used", tier="critical") == 1.25
    assert value("temper_tier_cpus_used", tier="high") == 0
    assert value("temper_tier_cpu_seconds_total", tier="low") == 2
    assert value("temper_tier_run_delay_seconds_total", tier="critical") == 2


def test_a_layer_is_told_of(value):
    assert value("temper_layer_info", layer="critical", kind="Confined", tier="critical") == 1
    assert value("temper_layer_info", layer="open", kind="Open", tier="") == 1
    assert value("temper_layer_util_ratio", layer="critical") == 0.5
    assert value("temper_layer_util_ratio", layer="open") is None
    assert value("temper_layer_tasks", layer="open") == 90
    assert value("temper_layer_fallback_ratio", layer="critical") == 0.01
    assert value("temper_layer_outside_ratio", layer="critical") == 0.02
    assert value("temper_layer_outside_ratio", layer="open") is None
    assert value("temper_layer_cpu_seconds_total", layer="critical") == 4


def test_pressure_is_told_as_time_and_as_events(value):
    assert value("temper_pressure_seconds_total", resource="cpu", kind="some") == 2.5
    assert value("temper_pressure_seconds_total", resource="cpu", kind="full") == 1.5
    assert value("temper_pressure_seconds_total", resource="memory", kind="full") is None
    assert value("temper_pressure_events_total", resource="cpu") == 3


def test_how_the_node_is_looked_at_is_told(value):
    assert value("temper_observe_tier", tier="bpf-iter") == 1
    assert value("temper_observe_tier", tier="bpf") == 0
    assert value("temper_observe_period_seconds") == 10
    assert value("temper_observe_asked_period_seconds") == 5
    assert value("temper_observe_stretched") == 1
    assert value("temper_observe_unlisted_threads") == 44
    assert value("temper_observe_defects") == 2
    assert value("temper_observe_seconds_total") == 4


def test_what_looking_costs_is_told(value):
    assert value("temper_overhead_cpu_ratio", part="observe_user") == 0.002
    assert value("temper_overhead_cpu_seconds_total", part="observe_user") == 0.008
    assert value("temper_overhead_bpf_cpu_ratio") == 0.001
    assert value("temper_overhead_bpf_cpu_seconds_total") == 0.004
    assert value("temper_overhead_descriptors") == 17
    assert value("temper_instrument_helpers", instrument="tracer") == 2
    assert value("temper_instrument_helper_cpu_seconds_total", instrument="tracer") == 7.5
    assert value("temper_instrument_helper_memory_bytes", instrument="tracer") == 90_000_000
    assert value("temper_instrument_state_bytes", instrument="tracer") == 4096
    assert value("temper_instrument_state_limit_bytes", instrument="tracer") == 65536
    assert value("temper_overhead_tick_seconds") == 0.003
    assert value("temper_engine_memory_bytes") == 70_000_000


def test_violations_are_counted_by_severity_too(value):
    assert value("temper_lint_severity_violations", severity="error") == 1
    assert value("temper_lint_severity_violations", severity="warning") == 0
    assert value("temper_lint_violation", invariant="smt_collision") == 1


def test_what_became_of_profiles_is_told(value):
    profile = {"profile": "mysql-innodb"}
    assert value("temper_profile_coverage_ratio", **WEB, **profile) == 0.75
    assert value("temper_profile_not_applied", reason="shape") == 1
    assert value("temper_profile_not_applied", reason="unknown_id") == 0
    assert value("temper_profile_expired_pods", **profile) == 1


def test_the_health_of_plugins_is_told(value):
    assert value("temper_plugin_active", plugin="linter") == 1
    assert value("temper_plugin_active", plugin="broken") == 0
    assert value("temper_plugin_info", plugin="broken", version="2.0", state="set_aside") == 1
    assert value("temper_plugin_calls_total", plugin="linter") == 7
    assert value("temper_plugin_seconds_total", plugin="linter") == 0.5
    assert value("temper_plugin_failures_total", plugin="linter") == 3


def test_the_period_is_told_by_an_observer_that_says_nothing_of_itself(view, fakes):
    view.last = fakes.a_snapshot(overhead=Overhead(period_s=7.0))

    text, _ = Scraper(view, 5_000).scrape("")

    assert "\ntemper_observe_period_seconds 7.0\n" in text.decode()


def test_a_pod_that_was_not_summed_up_yet_has_used_nothing(view):
    text, _ = Scraper(view, 5_000).scrape("")

    assert 'temper_pod_cpu_seconds_total{namespace="shop",pod="web"} 0.000000\n' in text.decode()


def test_units_are_announced_where_the_name_ends_with_them(busy):
    text, _ = Scraper(busy, 5_000).scrape(OPENMETRICS)

    lines = text.decode().splitlines()
    assert "# UNIT temper_pod_cpu_seconds seconds" in lines
    assert "# UNIT temper_overhead_memory_bytes bytes" in lines
    assert not any(line.startswith("# UNIT temper_layer_cpus_used") for line in lines)


def test_numbers_that_are_none_are_exported_as_prometheus_writes_them(view, fakes):
    layer = evolve(view.last.layers[0], util=math.inf, cpus_used=math.nan, fallback_ratio=-math.inf)
    view.last = fakes.a_snapshot(layers=(layer,))

    text, _ = Scraper(view, 5_000).scrape("")

    assert 'temper_layer_util_ratio{layer="critical"} +Inf\n' in text.decode()
    assert 'temper_layer_cpus_used{layer="critical"} NaN\n' in text.decode()
    assert 'temper_layer_fallback_ratio{layer="critical"} -Inf\n' in text.decode()


def test_promtool_finds_nothing_to_complain_about(busy):
    text, _ = Scraper(busy, 5_000).scrape("")

    judged = promtool("check", "metrics", input=text)

    assert (judged.returncode, judged.stdout, judged.stderr) == (0, b"", b"")


def test_events_are_counted_by_kind(value):
    assert value("temper_events_total", kind="safe_mode_requested") == 2
