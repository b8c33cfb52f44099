import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_core.metrics.families import FAMILIES
from temper_core.metrics.scraper import Scraper
from temper_core.metrics.source import AgentCounters
from temper_core.records.histogram import Histogram
from temper_core.records.snapshots import Mode, SafeModeReason, Status
from temper_core.records.tiers import Tier
from tests.core.server.scraping import OPENMETRICS, exporter, gauge, scrape

PUBLISHED = {
    "temper_tier_pods": {"tier"},
    "temper_tier_cpu_request_cores": {"tier"},
    "temper_config_generation": set(),
    "temper_reloads_total": {"cause"},
    "temper_reload_stock_seconds": {"way"},
    "temper_swaps_total": {"way"},
    "temper_swap_failures_total": {"kind"},
    "temper_mode": {"mode"},
    "temper_safe_mode": {"reason"},
    "temper_ejections_total": {"kind"},
    "temper_layer_cpus": {"layer"},
    "temper_layer_cpus_used": {"layer"},
    "temper_layer_demoted": {"layer"},
    "temper_pressure_ratio": {"resource", "kind", "window"},
    "temper_contention": {"tier"},
    "temper_lint_violation": {"invariant"},
    "temper_profile_load_failures": {"profile"},
    "temper_plugin_failures_total": {"plugin"},
    "temper_overhead_cpu_ratio": {"part"},
    "temper_overhead_memory_bytes": set(),
}


def test_every_published_family_is_exported_with_its_labels():
    assert {
        family.name: set(family.labels) for family in FAMILIES if family.name in PUBLISHED
    } == PUBLISHED


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_both_formats_say_the_same(view, accept):
    series = scrape(view, accept)

    assert series["temper_tier_pods", ("tier", "critical")] == 1
    assert series["temper_tier_pods", ("tier", "high")] == 0
    assert series["temper_tier_cpu_request_cores", ("tier", "critical")] == 1.5
    assert series["temper_config_generation",] == 7
    assert series["temper_reloads_total", ("cause", "pods")] == 3
    assert series["temper_ejections_total", ("kind", "stall")] == 1
    assert series["temper_layer_cpus", ("layer", "critical")] == 2
    assert series["temper_layer_cpus_used", ("layer", "critical")] == 1.23
    assert series["temper_layer_demoted", ("layer", "open")] == 1
    assert series["temper_lint_violation", ("invariant", "smt_collision")] == 1
    assert series["temper_lint_violation", ("invariant", "layer_mismatch")] == 0
    assert series["temper_plugin_failures_total", ("plugin", "linter")] == 0
    assert series["temper_overhead_cpu_ratio", ("part", "kernel")] == 0.001
    assert series["temper_overhead_memory_bytes",] == 50_000_000
    assert series["temper_threads",] == 321
    assert series["temper_series_dropped_total",] == 0
    ratio = ("kind", "some"), ("resource", "cpu"), ("window", "10s")
    assert series["temper_pressure_ratio", *ratio] == 0.25


def test_the_media_type_follows_accept(agent):
    plain = agent.tcp.get("/metrics").headers["content-type"]
    modern = agent.tcp.get("/metrics", headers={"accept": OPENMETRICS})

    assert plain.startswith("text/plain")
    assert modern.headers["content-type"].startswith("application/openmetrics-text")
    assert modern.text.endswith("# EOF\n")


@pytest.mark.parametrize("mode", list(Mode))
def test_exactly_one_mode_is_one(view, mode):
    view.state = Status(mode)

    series = scrape(view)

    ones = [labels for (name, *labels), v in series.items() if name == "temper_mode" and v]
    assert ones == [[("mode", mode.value)]]


@pytest.mark.parametrize("reason", list(SafeModeReason))
def test_the_reason_of_safe_mode_is_one_only_in_safe_mode(view, reason):
    view.state = Status(Mode.SAFE_MODE, reason.value)
    inside = scrape(view)["temper_safe_mode", ("reason", reason.value)]
    view.state = Status(Mode.ENFORCING, reason.value)
    outside = scrape(view)["temper_safe_mode", ("reason", reason.value)]

    assert (inside, outside) == (1, 0)


def test_a_tier_is_contended_from_a_tenth_of_the_time_on(view, fakes):
    at, below = (
        evolve(view.last.pods[0], tier=tier, pressure={"cpu": fakes.pressure(ratio)})
        for tier, ratio in ((Tier.HIGH, 0.10), (Tier.LOW, 0.0999))
    )
    view.last = fakes.a_snapshot(pods=(at, below))

    series = scrape(view)

    assert series["temper_contention", ("tier", "high")] == 1
    assert series["temper_contention", ("tier", "low")] == 0


def test_tiers_are_counted_from_the_pods_where_nothing_is_planned(view, fakes):
    view.last, view.in_force = fakes.a_snapshot(plan=None), None

    series = scrape(view)

    assert series["temper_tier_pods", ("tier", "low")] == 1
    assert ("temper_tier_cpu_request_cores", ("tier", "low")) not in series


def test_before_the_first_observation_the_agent_still_tells_of_itself(view):
    view.last = view.in_force = None

    series = scrape(view)

    assert series["temper_mode", ("mode", "enforcing")] == 1
    assert ("temper_snapshot_age_seconds",) not in series
    assert not [name for name, *_ in series if name.startswith("temper_layer")]


def test_the_age_of_the_snapshot_is_told_by_the_monotonic_clock(view, fakes):
    view.last = fakes.a_snapshot(monotonic_s=100.0, at=time.time() + 3600)
    scraper = Scraper(view, 5_000, clock=lambda: 112.5)

    text, _ = scraper.scrape("")

    assert "\ntemper_snapshot_age_seconds 12.5\n" in text.decode()


@given(st.lists(st.floats(0, 100), max_size=20))
def test_a_histogram_counts_each_value_once_in_the_bucket_that_holds_it(values):
    histogram = Histogram()
    for value in values:
        histogram = histogram.with_value(value)

    assert sum(histogram.counts) == len(values)
    assert histogram.total == pytest.approx(sum(values))
    for n, bound in enumerate(histogram.bounds):
        assert sum(histogram.counts[: n + 1]) == sum(value <= bound for value in values)


def test_the_stock_window_is_a_histogram_prometheus_understands(view):
    view.counted = AgentCounters(
        stock_seconds={"cold": Histogram().with_value(0.05).with_value(40).with_value(90)}
    )

    series = scrape(view, OPENMETRICS)

    name = "temper_reload_stock_seconds_bucket"
    cold = ("way", "cold")
    assert series[name, ("le", "0.05"), cold] == 1
    assert series[name, ("le", "60.0"), cold] == 2
    assert series[name, ("le", "+Inf"), cold] == 3
    assert series["temper_reload_stock_seconds_sum", cold] == pytest.approx(130.05)


def test_a_second_scraper_costs_no_second_look_at_the_pods(view, fakes):
    class CountedPods(tuple):
        __slots__ = ()

        def __iter__(self):
            walks.append(self)
            return super().__iter__()

    walks = []
    view.last = fakes.a_snapshot(pods=CountedPods(view.last.pods))
    scraper = Scraper(view, 5_000, clock=lambda: 112.5)
    first, _ = scraper.scrape("")
    needed = len(walks)
    second, _ = scraper.scrape("")
    scraper.scrape(OPENMETRICS)

    assert first == second
    assert len(walks) == needed > 0


def test_a_scrape_tells_of_the_last_observation_and_the_agent_as_it_is_now(view, fakes):
    scraper = Scraper(view, 5_000)
    scraper.scrape("")
    view.state = Status(Mode.RELOADING)
    changed, _ = scraper.scrape("")
    view.last = fakes.a_snapshot(pods=(evolve(view.last.pods[0], threads=99),))
    later, _ = scraper.scrape("")

    assert '\ntemper_mode{mode="reloading"} 1.0\n' in changed.decode()
    assert '\ntemper_pod_threads{namespace="shop",pod="web"} 12\n' in changed.decode()
    assert '\ntemper_pod_threads{namespace="shop",pod="web"} 99\n' in later.decode()


def test_a_scrape_says_how_many_series_it_has(view):
    view.exported = [exporter(gauge("temper_mine", 1, 2, 3))]

    series = scrape(view)

    assert series["temper_series",] == len(series) == view.series


@pytest.mark.parametrize("limit", [100, 150, 1_000])
def test_a_scrape_never_holds_more_series_than_the_limit(view, limit):
    view.exported = [exporter(gauge("temper_many", *range(2_000)))]
    scraper = Scraper(view, limit)

    scraper.scrape("")
    text, _ = scraper.scrape("")

    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    (dropped,) = [line.split()[1] for line in lines if line.startswith("temper_series_dropped")]
    total = len(scrape(view, limit=10**9))
    assert len(lines) == limit
    assert float(dropped) == 2 * (total - limit)
    assert any(line.startswith("temper_snapshot_age_seconds") for line in lines)


def test_what_the_agent_counts_anew_takes_room_from_the_same_observation(view, fakes):
    view.last = fakes.a_snapshot(
        pods=tuple(evolve(view.last.pods[0], pod=f"pod-{n}") for n in range(100))
    )
    scraper = Scraper(view, 400)
    scraper.scrape("")
    view.counted = AgentCounters(reloads={f"cause-{n}": 1 for n in range(30)})
    text, _ = scraper.scrape("")

    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    assert len(lines) <= 400
    assert f"temper_series {len(lines)}.0" in lines


def test_a_histogram_is_dropped_as_a_whole(view):
    for limit in range(2, 60):
        names = [name for name, *_ in scrape(view, OPENMETRICS, limit)]

        buckets = sum(name.startswith("temper_reload_stock_seconds") for name in names)
        assert buckets in {0, 14}


def test_the_page_of_metrics_is_what_is_exported():
    docs = Path(__file__).parents[3] / "docs"
    spec = spec_from_file_location("metrics_reference", docs / "metrics_reference.py")
    reference = module_from_spec(spec)
    spec.loader.exec_module(reference)

    assert reference.metrics_reference() in (docs / "metrics.md").read_text()
