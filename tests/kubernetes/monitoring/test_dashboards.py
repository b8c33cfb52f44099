"""The dashboards of the chart: made from the code, whole, and asking for what there is."""

import subprocess
import sys
from collections import Counter
from itertools import combinations

import pytest
import yaml

from deploy.monitoring.board import Board, Row
from deploy.monitoring.catalogue import catalogue
from deploy.monitoring.panels import Query, lines
from deploy.monitoring.queries import UnknownNameError, check_names, families_in
from deploy.monitoring.writing import FILES, UNUSED, stale, write
from tests.kubernetes.chart.charts import ROOT, values_file
from tests.kubernetes.monitoring.boards import VARIABLE, asked, boards, panels
from tests.prometheus import promtool

GRAFANAS = {"__value", "__data", "__url_time_range", "__rate_interval", "__interval"}
VALUES = dict.fromkeys(
    ("cluster", "instance", "tier", "namespace", "pod"), "any"
)  # fmt: skip


@pytest.fixture(params=["fleet", "node", "pod"])
def board(request):
    return boards()[request.param]


def test_the_committed_dashboards_are_what_the_code_makes():
    assert list(stale()) == []


def test_stale_files_are_named_and_made_anew(tmp_path):
    write(tmp_path)
    (tmp_path / "node.json").write_text("{}")
    (tmp_path / "pod.json").unlink()
    (tmp_path / "former.json").write_text("{}")

    found = set(stale(tmp_path))
    write(tmp_path)

    assert found == {"node.json", "pod.json", "former.json"}
    assert (tmp_path / "node.json").read_text() == (FILES / "node.json").read_text()


def test_the_command_checks_what_is_committed():
    done = subprocess.run(
        [sys.executable, "-m", "deploy.monitoring", "--check"], cwd=ROOT, check=False
    )

    assert done.returncode == 0


def test_every_family_is_shown_or_deliberately_not():
    shown = {family.name for each in asked() for family in families_in(each.query)}

    assert shown | set(UNUSED) == set(catalogue())
    assert not shown & set(UNUSED)


def test_queries_name_series_and_labels_that_are_exported():
    for each in asked():
        check_names(each.query, each.legend.replace("__auto", ""))


def test_every_query_is_promql(tmp_path):
    rules = [
        {"record": f"asked:{number}", "expr": each.with_values(VALUES)}
        for number, each in enumerate(asked())
    ]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": rules}]}))

    done = promtool("check", "rules", path, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_queries_keep_to_what_was_chosen(board):
    chosen = {each["name"] for each in board["templating"]["list"]}

    for panel in panels(board):
        for target in panel.get("targets", ()):
            assert 'cluster=~"$cluster"' in target["expr"]
            assert set(VARIABLE.findall(target["expr"])) <= chosen | GRAFANAS
            assert target["datasource"]["uid"] == "${datasource}"


def test_choices_ask_for_labels_that_there_are(board):
    for each in board["templating"]["list"]:
        if each["type"] == "query":
            series, _, label = each["query"]["query"].removeprefix("label_values(").rpartition(", ")
            check_names(series, f"{{{{{label.removesuffix(')')}}}}}")


def test_choices_depend_on_those_before_them_only(board):
    before = {"datasource"}
    for each in board["templating"]["list"]:
        assert set(VARIABLE.findall(str(each["query"]))) <= before
        before.add(each["name"])


def test_panels_lie_side_by_side(board):
    open_panels = [panel for panel in board["panels"] if not panel.get("collapsed")]
    for one, other in combinations((panel["gridPos"] for panel in open_panels), 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
    assert all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in panels(board))


def test_panels_have_a_number_and_tell_what_they_show(board):
    numbers = Counter(panel["id"] for panel in panels(board))

    assert max(numbers.values()) == 1
    for panel in panels(board):
        assert panel["title"]
        if panel["type"] != "row":
            assert "`temper_" in panel["description"]
            assert panel["fieldConfig"]["defaults"]["unit"] or panel["type"] == "table"


def test_links_lead_to_dashboards_that_there_are_with_choices_that_they_have():
    every = boards()
    by_uid = {each["uid"]: each for each in every.values()}
    urls = [(name, url) for name, board in every.items() for url in _urls(board)]

    assert len(urls) >= 9
    for name, url in urls:
        _, _, uid, rest = url.split("/")
        path, _, query = rest.partition("?")
        assert uid == path
        known = {each["name"] for each in by_uid[uid]["templating"]["list"]}
        for part in query.split("&"):
            kept = VARIABLE.findall(part)
            if part.startswith("var-"):
                assert part.removeprefix("var-").partition("=")[0] in known
            else:
                own = {each["name"] for each in every[name]["templating"]["list"]}
                assert set(kept) <= (known & own) | GRAFANAS


def _urls(board):
    yield from (link["url"] for link in board["links"])
    for panel in panels(board):
        for override in panel.get("fieldConfig", {}).get("overrides", ()):
            for looks in override["properties"]:
                if looks["id"] == "links":
                    yield from (link["url"] for link in looks["value"])


def test_overrides_are_of_columns_and_series_that_there_are(board):
    for panel in panels(board):
        names = {target["legendFormat"] for target in panel.get("targets", ())}
        for step in panel.get("transformations", ()):
            names |= set(step["options"].get("renameByName", {}).values())
        for override in panel.get("fieldConfig", {}).get("overrides", ()):
            assert override["matcher"]["options"] in names, panel["title"]


def test_tables_are_sorted_by_columns_that_they_have(board):
    for panel in panels(board):
        if panel["type"] == "table":
            titles = set(panel["transformations"][1]["options"]["renameByName"].values())
            assert {each["displayName"] for each in panel["options"]["sortBy"]} <= titles


def test_a_panel_of_what_nobody_exports_cannot_be_made():
    panel = lines("Gone", Query("sum(temper_gone{@})"))
    board = Board("any", "Any", "Any.", 'instance="$instance"', "", (), (Row("Any", (panel,)),))

    with pytest.raises(UnknownNameError, match="temper_gone"):
        board.json()


def test_the_chart_brings_each_dashboard_as_a_config_map(helm, tmp_path):
    given = {"enabled": True, "namespace": "grafana", "annotations": {"folder": "Temper"}}

    rendered = helm.render(*values_file(tmp_path, {"grafanaDashboards": given}))

    maps = [each for each in rendered.of("ConfigMap") if "dashboard" in each["metadata"]["name"]]
    assert len(maps) == 3
    for each in maps:
        (name, text), *_ = each["data"].items()
        assert text == (FILES / name.removeprefix("temper-")).read_text()
        assert each["metadata"]["namespace"] == "grafana"
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["annotations"] == {"folder": "Temper"}


def test_no_dashboard_is_there_unless_asked_for(helm):
    rendered = helm.render()

    assert not [each for each in rendered.objects if "dashboard" in each["metadata"]["name"]]
