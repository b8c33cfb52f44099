"""What plugins export is held against what they declare."""

import pytest
from structlog.testing import capture_logs

from temper_core import Exporter, Histogram, Metric, MetricFamily, MetricSample, PanelHint
from temper_core.metrics.declarations import MOST_DEFECTS, Declarations
from temper_core.metrics.scraper import Scraper
from temper_core.testing import make_snapshot

BEANS = MetricFamily("temper_acme_beans", "Beans.", labels=("kind",))
CUPS = MetricFamily("temper_acme_cups_total", "Cups.", "counter")


def collected(declarations, *metrics, plugin="acme"):
    exporter = declarations.held(plugin, Exporter("any", lambda _: metrics))
    return list(exporter.collect(make_snapshot()))


def test_what_is_declared_is_exported_without_a_defect():
    declarations = Declarations([("acme", BEANS), ("acme", CUPS)])
    metrics = [
        BEANS.metric([MetricSample(3, {"kind": "arabica"})]),
        Metric("temper_acme_cups", "Cups.", [MetricSample(1)], "counter"),
    ]

    found = collected(declarations, *metrics)

    assert [metric.name for metric in found] == ["temper_acme_beans", "temper_acme_cups"]
    assert declarations.defects == ()


@pytest.mark.parametrize(
    ("metric", "problem"),
    [
        (
            Metric("temper_acme_milk", "Milk.", [MetricSample(1)]),
            "is not declared by temper_metrics",
        ),
        (
            Metric("temper_acme_beans", "Beans.", [MetricSample(1)], "histogram"),
            "is a histogram, but declared as a gauge",
        ),
        (
            BEANS.metric(iter([MetricSample(1, {"kind": "a", "sort": "b", "age": "c"})])),
            "has labels that are not declared: age, sort",
        ),
    ],
    ids=["name", "kind", "labels"],
)
def test_what_differs_from_its_declaration_is_exported_and_named_once(metric, problem):
    declarations = Declarations([("acme", BEANS)])

    (found,) = collected(declarations, metric)
    collected(declarations, metric)

    assert len(found.samples) == 1 or problem.startswith("has labels")
    assert declarations.defects == (f"plugin acme: its metric {metric.name} {problem}",)


def test_a_plugin_that_declares_nothing_is_not_held_to_it():
    declarations = Declarations([("other", BEANS)])

    (found,) = collected(declarations, Metric("temper_acme_milk", "Milk.", [MetricSample(1)]))

    assert found.name == "temper_acme_milk"
    assert declarations.defects == ()


def test_a_name_that_another_has_is_a_defect_of_the_second_even_without_declarations():
    declarations = Declarations()

    with capture_logs() as logs:
        for _ in range(2):
            declarations.note_taken("zeta", "temper_same", "acme")
            declarations.note_taken("zeta", "temper_mode", "")

    assert declarations.defects == (
        "plugin zeta: its metric temper_same is dropped: plugin acme exports a family of this name",
        "plugin zeta: its metric temper_mode is dropped: the core exports a family of this name",
    )
    assert [entry["event"] for entry in logs] == ["metric_name_taken"] * 2


def test_defects_are_bounded_whatever_names_a_plugin_makes_up():
    declarations = Declarations([("acme", BEANS)])

    collected(
        declarations,
        *(Metric(f"temper_acme_n{n}", "N.", [MetricSample(1)]) for n in range(100)),
    )

    assert len(declarations.defects) == MOST_DEFECTS


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "beans"},
        {"name": "temper_acme_cups", "kind": "counter"},
        {"name": "temper_acme_beans_total"},
        {"name": "temper_acme_beans", "kind": "summary"},
        {"name": "temper_acme_beans", "help": ""},
        {"name": "temper_acme_beans", "labels": ("a b",)},
        {"name": "temper_acme_beans", "panels": ("a panel",)},
    ],
    ids=str,
)
def test_a_declaration_that_could_not_be_exported_is_refused(wrong):
    with pytest.raises((ValueError, TypeError)):
        MetricFamily(**{"help": "Any.", **wrong})


@pytest.mark.parametrize("wrong", [{"title": ""}, {"unit": "furlongs"}, {"board": "wall"}], ids=str)
def test_a_hint_that_no_dashboard_can_follow_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PanelHint(**{"title": "Any", **wrong})


def test_a_scrape_has_the_family_that_was_not_declared(fakes):
    declarations = Declarations([("acme", BEANS)])
    histogram = Metric(
        "temper_acme_seconds", "Time.", [MetricSample(Histogram((1.0,), (2, 0), 0.5))], "histogram"
    )
    view = fakes.FakeView(last=make_snapshot())
    view.exported = [("acme", declarations.held("acme", Exporter("a", lambda _: [histogram])))]

    text, _ = Scraper(view, 5000).scrape("")

    assert b"temper_acme_seconds_bucket" in text
    assert len(declarations.defects) == 1
