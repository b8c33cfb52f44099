"""Windows added up, and the metric families that are made of them."""

from functools import partial

import pytest
from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families

from temper_core import (
    Exporter,
    Histogram,
    LayerKind,
    LayerSample,
    PodSample,
    Tier,
    WaitHistogram,
    WakeWindow,
)
from temper_core.metrics.scraper import Scraper
from temper_plugin_tracer.metrics import MOST_PODS, wait_metrics
from temper_plugin_tracer.wait_totals import MOST_SUBJECTS, WAIT_BOUNDS, WaitTotals
from tests.core.server.fake_view import FakeView
from tests.tracer.people import a_snapshot


def waits(subject, *counts, total_s=0.0):
    return WaitHistogram(subject, counts, total_s)


def a_window(*found, **changes):
    return WakeWindow(7.0, 0.25, 10.0, 1e4, **{"waits": found, **changes})


@pytest.fixture
def totals():
    return WaitTotals()


def pod(name="web", namespace="shop"):
    return PodSample(namespace, name, name, Tier.HIGH, 1, 0.1)


def families(totals, *pods, layers=()):
    snapshot = evolve(a_snapshot(), pods=pods, layers=layers)
    return {metric.name: metric for metric in wait_metrics(totals, snapshot)}


def test_windows_of_wakes_add_up(totals):
    window = a_window(
        waits("node", 0, 3), waits("shop/web", 0, 1, total_s=0.5), waits("layer open", 2), lost=4
    )
    totals.add(window)
    totals.add(evolve(window, at=8.0))

    by_subject = totals.by_subject()
    assert (totals.sums.windows, totals.sums.watched_s, totals.sums.lost) == (2, 0.5, 8)
    assert sum(totals.sums.waits.counts) == 6
    assert sum(by_subject["shop/web"].counts) == 2
    assert by_subject["shop/web"].total == 1.0
    assert sum(by_subject["layer open"].counts) == 4


@pytest.mark.parametrize(
    ("exponent", "bound"),
    [(0, 16e-6), (4, 16e-6), (5, 64e-6), (6, 64e-6), (10, 1.024e-3), (22, 4.194304), (23, None)],
)
def test_a_wait_falls_into_the_smallest_bucket_that_holds_it(totals, exponent, bound):
    counts = [0] * 26
    counts[exponent] = 1
    totals.add(a_window(waits("node", *counts)))

    histogram = totals.sums.waits
    (slot,) = [n for n, count in enumerate(histogram.counts) if count]
    assert slot == (len(WAIT_BOUNDS) if bound is None else WAIT_BOUNDS.index(bound))


def test_waits_beyond_what_is_told_apart_are_above_every_bucket(totals):
    totals.add(a_window(waits("node", 0, 0, 5)))

    assert totals.sums.waits.counts[-1] == 5


def test_a_pod_without_a_namespace_has_its_waits_too(totals):
    totals.add(a_window(waits("sshd.service", 1, 0)))

    [sample] = families(totals, pod("sshd.service", ""))["temper_pod_wait_seconds"].samples
    assert sample.labels == {"namespace": "", "pod": "sshd.service"}
    assert sum(sample.value.counts) == 1


def test_pods_and_layers_that_are_gone_have_no_series(totals):
    totals.add(a_window(waits("node", 1, 0), waits("shop/web", 1, 0), waits("layer open", 1, 0)))

    gone, there = (
        families(totals),
        families(totals, pod(), layers=(LayerSample("open", LayerKind.OPEN, (), 2.0, None, 1),)),
    )

    assert [len(gone[f"temper_{name}_wait_seconds"].samples) for name in KINDS] == [1, 0, 0]
    assert [len(there[f"temper_{name}_wait_seconds"].samples) for name in KINDS] == [1, 1, 1]


KINDS = ("node", "layer", "pod")


def test_until_something_was_watched_there_are_families_and_no_series(totals):
    found = families(totals, pod())

    assert len(found) == 6
    assert not any(metric.samples for metric in found.values())


def test_counters_are_what_the_windows_add_up_to(totals):
    totals.add(a_window(lost=6))

    found = families(totals)

    values = {
        name: metric.samples[0].value for name, metric in found.items() if metric.kind == "counter"
    }
    assert values == {
        "temper_wake_windows_total": 1,
        "temper_wake_watched_seconds_total": 0.25,
        "temper_wake_edges_lost_total": 6,
    }
    assert found["temper_node_wait_seconds"].samples == ()


def test_of_many_pods_those_that_waited_longest_have_series(totals):
    names = [f"web-{n}" for n in range(MOST_PODS + 10)]
    found = [waits(f"shop/{name}", 1, 0, total_s=n) for n, name in enumerate(names)]
    totals.add(a_window(*found))

    samples = families(totals, *map(pod, names))["temper_pod_wait_seconds"].samples

    assert len(samples) == MOST_PODS
    assert samples[0].labels["pod"] == names[-1]
    assert isinstance(samples[0].value, Histogram)


def test_only_so_many_that_waited_are_kept_the_last_ones(totals):
    totals.add(a_window(*(waits(f"shop/{n}", 1, 0) for n in range(MOST_SUBJECTS))))
    totals.add(a_window(waits("shop/0", 1, 0), waits("shop/new", 1, 0)))

    kept = totals.by_subject()
    assert len(kept) == MOST_SUBJECTS
    assert {"shop/0", "shop/new"} <= kept.keys()
    assert "shop/1" not in kept


@pytest.fixture
def value():
    """Scrape an agent whose windows have waits of everything; return the value of a series."""
    totals = WaitTotals()
    subjects = ("node", "layer critical", "shop/web")
    found = (waits(each, 3, 0, 0, 0, 0, 1, 0, total_s=0.001) for each in subjects)
    totals.add(a_window(*found, lost=6))
    view = FakeView()
    collect = partial(wait_metrics, totals)
    view.exported = [("tracer", Exporter("tracer", collect))]
    text, _ = Scraper(view, 5_000).scrape("")
    series = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
    return lambda name, **labels: series[name, *sorted(labels.items())]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("temper_node_wait_seconds", {}),
        ("temper_layer_wait_seconds", {"layer": "critical"}),
        ("temper_pod_wait_seconds", {"namespace": "shop", "pod": "web"}),
    ],
)
def test_waits_are_histograms(value, name, labels):
    assert value(f"{name}_bucket", **labels, le="1.6e-05") == 3
    assert value(f"{name}_bucket", **labels, le="6.4e-05") == 4
    assert value(f"{name}_bucket", **labels, le="+Inf") == 4
    assert value(f"{name}_count", **labels) == 4
    assert value(f"{name}_sum", **labels) == 0.001


def test_the_windows_that_are_watched_are_told_of(value):
    assert value("temper_wake_windows_total") == 1
    assert value("temper_wake_watched_seconds_total") == 0.25
    assert value("temper_wake_edges_lost_total") == 6
