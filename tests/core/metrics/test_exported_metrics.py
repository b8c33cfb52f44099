"""The metrics of plugins, which may be anything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.metrics.label_text import readable
from temper_core.metrics.scraper import Scraper
from temper_core.records.contributions import Exporter, Metric, MetricSample
from tests.core.server.scraping import OPENMETRICS, exporter, gauge, scrape


def test_a_plugins_metrics_are_exported(view):
    counted = Metric("temper_mine_total", "Help.", [MetricSample(3, {"kind": "a"})], "counter")
    view.exported = [exporter(gauge("temper_mine_ratio", 0.5), counted)]

    series = scrape(view, OPENMETRICS)

    assert series["temper_mine_ratio", ("n", "0")] == 0.5
    assert series["temper_mine_total", ("kind", "a")] == 3


@pytest.mark.parametrize(
    "collect",
    [
        lambda _: 1 / 0,
        lambda _: None,
        lambda _: ["not a metric"],
        lambda _: (gauge("temper_half", 1) if n == 0 else 1 / 0 for n in range(2)),
        lambda _: [Metric("temper_x", "Help.", [MetricSample("high")])],
        lambda _: [Metric("temper_x", "Help.", [MetricSample(1, {"tid": "42"})])],
        lambda _: [Metric("temper_x", "Help.", [MetricSample(1, {"pod_uid": "42"})])],
        lambda _: [Metric("temper_x", "Help.", [MetricSample(1, {'a"} 5\nb': "42"})])],
        lambda _: [Metric("temper_x", "Help.", [MetricSample(1, {"__name__": "x"})])],
        lambda _: [Metric("temper_x", "Help.", [MetricSample(1, {"a": "v" * 4097})])],
    ],
)
def test_a_broken_exporter_costs_only_its_own_metrics(view, collect):
    view.exported = [("broken", Exporter("broken", collect)), exporter(gauge("temper_fine", 1))]

    series = scrape(view)

    assert view.failed == [("broken", "exporter broken")]
    assert series["temper_fine", ("n", "0")] == 1
    assert not [name for name, *_ in series if name in {"temper_x", "temper_half"}]


@pytest.mark.parametrize(
    "name",
    [
        "temper_mode",
        "temper_reloads",
        "temper_reloads_total",
        "temper_reload_stock_seconds_bucket",
        "temper_reload_stock_seconds_count",
        "temper_series_dropped_total",
        "temper_series_dropped",
        "temper_series",
        "temper_pod_cpu_seconds",
        "temper_reload_stock_seconds_sum",
    ],
)
def test_a_name_that_the_core_has_is_dropped_and_counted(view, name):
    view.exported = [exporter(gauge(name, 1, 2))]

    series = scrape(view, OPENMETRICS)

    assert (name, ("n", "0")) not in series
    assert series["temper_series_dropped_total",] == 2


def test_a_name_that_two_exporters_claim_goes_to_the_first_and_is_counted(view):
    view.exported = [exporter(gauge("temper_same", 1)), exporter(gauge("temper_same", 2))]

    series = scrape(view)

    assert series["temper_same", ("n", "0")] == 1
    assert series["temper_series_dropped_total",] == 1


def test_a_name_that_is_taken_is_reported_with_its_plugin_and_its_owner(view):
    same = [gauge("temper_same", 1)]
    view.exported = [
        ("acme", Exporter("beans", lambda _: same)),
        ("zeta", Exporter("cups", lambda _: [*same, gauge("temper_mode", 1)])),
    ]

    scrape(view)

    assert view.taken == [("zeta", "temper_same", "acme"), ("zeta", "temper_mode", "")]


def test_a_series_that_comes_twice_is_exported_once(view):
    twice = Metric("temper_twice", "Help.", [MetricSample(1), MetricSample(2)])
    view.exported = [exporter(twice)]

    series = scrape(view, OPENMETRICS)

    assert series["temper_twice",] == 1
    assert series["temper_series_dropped_total",] == 1


ODD = st.text(max_size=20) | st.text('\0\a\b\t\n\v\f\r\x1b\x7f\x85\u2028\\"{}, =', max_size=20)


@given(labels=st.lists(ODD, max_size=4), help_text=ODD, value=st.floats())
def test_whatever_a_label_or_a_help_says_the_scrape_stays_readable(fakes, labels, help_text, value):
    view = fakes.FakeView()
    samples = [MetricSample(value, {"name": label}) for label in labels]
    view.exported = [exporter(Metric("temper_odd", help_text, samples))]

    texts = [Scraper(view, 5_000).scrape(accept)[0].decode() for accept in ("", OPENMETRICS)]
    plain, modern = scrape(view), scrape(view, OPENMETRICS)

    told = {key[1][1] for key in plain if key[0] == "temper_odd"}
    assert {text.replace("\n", "").isprintable() for text in texts} == {True}
    assert told == {key[1][1] for key in modern if key[0] == "temper_odd"}
    assert told == {readable(label) for label in labels}


def test_a_label_that_is_not_unicode_is_exported_all_the_same(view):
    view.exported = [exporter(Metric("temper_odd", "Help.", [MetricSample(1, {"name": "\udcff"})]))]

    assert scrape(view)["temper_odd", ("name", "?")] == 1
