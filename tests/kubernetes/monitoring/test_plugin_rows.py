"""Panels of the families that plugins declare."""

import ast
from pathlib import Path

import pytest

import deploy.monitoring
from deploy.monitoring import catalogue
from deploy.monitoring.catalogue import declared
from deploy.monitoring.plugin_rows import plugin_rows
from temper_core import MetricFamily, PanelHint

ROOT = Path(deploy.monitoring.__file__).parents[2]
GENERATED = (
    *ROOT.glob("deploy/monitoring/*.py"),
    ROOT / "docs/metrics_reference.py",
    ROOT / "docs/settings_reference.py",
)


def queries_of(board, *families):
    (row,) = plugin_rows(board, {"acme": families})
    assert row.title == "Plugin acme"
    return {
        panel.title: [(query.text, query.legend) for query in panel.queries] for panel in row.panels
    }


def test_a_family_without_a_hint_is_drawn_by_its_kind():
    gauge = MetricFamily("temper_acme_beans", "Beans.", labels=("kind",))
    counter = MetricFamily("temper_acme_cups_total", "Cups.", "counter")

    found = queries_of("node", gauge, counter)

    assert found == {
        "Acme beans": [("max by (kind) (temper_acme_beans{@})", "{{kind}}")],
        "Acme cups": [("sum(rate(temper_acme_cups_total{@}[$__rate_interval]))", "acme cups")],
    }


def test_a_histogram_is_drawn_by_its_quantiles():
    family = MetricFamily("temper_acme_seconds", "Time.", "histogram")

    found = queries_of("node", family)

    assert [legend for _, legend in found["Acme seconds"]] == ["p50", "p90", "p99", "p99.9"]
    assert "temper_acme_seconds_bucket{@}" in found["Acme seconds"][0][0]


def test_families_of_one_title_share_a_panel_and_keep_their_own_query():
    one = MetricFamily("temper_acme_hot", "Hot.", panels=(PanelHint("Cups", "bytes", "fleet"),))
    hint = PanelHint("Cups", "bytes", "fleet", "max(temper_acme_cold{@}) / 2", "cold")
    other = MetricFamily("temper_acme_cold", "Cold.", panels=(hint,))

    assert queries_of("fleet", one, other) == {
        "Cups": [("max(temper_acme_hot{@})", "cups"), ("max(temper_acme_cold{@}) / 2", "cold")]
    }
    assert plugin_rows("node", {"acme": (one, other)}) == ()


def test_every_plugin_that_declares_families_has_one_row():
    rows = {board: [row.title for row in plugin_rows(board)] for board in ("fleet", "node", "pod")}

    titles = {f"Plugin {plugin}" for plugin in declared()}
    assert {title for found in rows.values() for title in found} == titles
    assert all(len(found) == len(set(found)) for found in rows.values())


def test_a_row_is_of_the_families_that_are_installed_now(monkeypatch):
    family = MetricFamily("temper_acme_beans", "Beans.")
    monkeypatch.setattr(catalogue, "declared", lambda: {"acme": (family,)})
    monkeypatch.setattr("deploy.monitoring.plugin_rows.declared", catalogue.declared)
    catalogue.catalogue.cache_clear()
    try:
        (row,) = plugin_rows("node")
        panel = row.panels[0].json("", 1, {})
    finally:
        catalogue.catalogue.cache_clear()

    assert panel["targets"][0]["expr"] == "max(temper_acme_beans{})"
    assert "`temper_acme_beans`: Beans." in panel["description"]


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_what_generates_pages_and_dashboards_imports_no_plugin_and_names_none(path):
    tree = ast.parse(path.read_text())
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    icons = {
        value
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "icon"
    }
    strings = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in icons
    }

    assert not [name for name in imported if name.startswith("temper_plugin")]
    assert not strings & set(declared())
