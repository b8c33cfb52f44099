"""The alerts that the chart brings along, tried by promtool: each fires, and is silent, in time."""

import re
from pathlib import Path

import pytest
import yaml

from deploy.monitoring.queries import check_names
from tests.kubernetes.chart.charts import CHART, values_file
from tests.kubernetes.monitoring.alert_cases import CASES, ENFORCING, node, of
from tests.prometheus import promtool

WRITTEN = CHART / "files/rules/alerts.yaml"
RUNBOOK = Path(__file__).parents[3] / "docs/runbook.md"


def said(found):
    return " ".join(sorted({each.name for each in found}))


@pytest.mark.parametrize("case", CASES)
def test_alerts_fire_in_time_and_no_others_do(rules, case):
    series, expected = CASES[case]

    found = rules.fired(series, *expected)

    assert {moment: said(each) for moment, each in found.items()} == expected
    for fired in (each for some in found.values() for each in some):
        told = " ".join(fired.annotations.values())
        assert not re.search(r"<no value>|error|%!", told), told
        if "instance" in fired.labels:
            assert fired.labels["instance"] == "a"
            assert re.search(r"\ba\b", fired.annotations["summary"])


def test_nodes_of_one_name_in_two_clusters_are_two_nodes(rules):
    series = {
        **node("a", ENFORCING),
        'temper_mode{cluster="other",instance="a",mode="enforcing"}': "1x20 stale",
        'temper_build_info{cluster="other",instance="a",version="0.1.0"}': "1x20 stale",
    }

    (fired,) = rules.fired(series, 30)[30]

    assert fired.labels == {"cluster": "other", "instance": "a", "severity": "critical"}


def test_there_is_a_case_for_each_alert_that_fires_and_one_that_does_not(rules):
    fires = {name for _, expected in CASES.values() for name in expected.values() if name}

    assert fires == set(rules.names)
    assert "" in CASES["all is well"][1].values()


def test_numbers_are_told_as_people_read_them(rules):
    busy = {**node("a", ENFORCING), of("cost", "a", "observe_user"): "0+6x100"}
    late = {**node("a", ENFORCING), of("age", "a"): "600x60"}

    (over,) = rules.fired(busy, 60)[60]
    (stale,) = rules.fired(late, 30)[30]

    assert over.annotations["summary"] == "The agent of a uses 10% of a core."
    assert stale.annotations["summary"] == "The list of pods of a is 10m 0s old."


def test_promtool_takes_the_file_as_it_stands():
    done = promtool("check", "rules", WRITTEN, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_says_how_severe_it_is_and_where_to_read_on(rules):
    for group in rules.groups:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in {"critical", "warning", "info"}
            assert rule["for"]
            assert rule["annotations"]["runbook_url"].startswith("docs/runbook.md#temper")


def test_alerts_name_what_is_exported(rules):
    for group in rules.groups:
        for rule in group["rules"]:
            check_names(rule["expr"])


def test_the_runbook_has_a_section_for_each_alert(rules):
    sections = {
        line.lstrip("#").strip().strip("`").lower()
        for line in RUNBOOK.read_text().splitlines()
        if line.startswith("#")
    }

    for group in rules.groups:
        for rule in group["rules"]:
            _, _, section = rule["annotations"]["runbook_url"].partition("#")
            assert section in sections


def test_single_alerts_can_be_changed_and_left_out(helm, tmp_path):
    changes = {
        "TemperLintPersistent": {"for": "1h", "severity": "info"},
        "TemperNotEnforcing": {"expr": 'temper_mode{mode="enforcing"} == 0'},
        "TemperPodsStale": {"enabled": False},
    }
    given = {"alerts": changes, "runbookUrl": "https://r/b", "alertLabels": {"team": "platform"}}
    values = {"prometheusRule": {"enabled": True, **given}}

    rendered = helm.render(*values_file(tmp_path, values)).get("PrometheusRule", "temper")
    rules = {r["alert"]: r for group in rendered["spec"]["groups"] for r in group["rules"]}

    assert rules["TemperLintPersistent"]["for"] == "1h"
    assert rules["TemperLintPersistent"]["labels"] == {"severity": "info", "team": "platform"}
    assert rules["TemperNotEnforcing"]["expr"] == 'temper_mode{mode="enforcing"} == 0'
    assert "TemperPodsStale" not in rules
    assert rules["TemperReloadStorm"]["annotations"]["runbook_url"] == (
        "https://r/b#temperreloadstorm"
    )


def test_an_alert_that_there_is_not_is_refused_with_those_that_there_are(helm, tmp_path):
    values = {"prometheusRule": {"enabled": True, "alerts": {"TemperGone": {"for": "1h"}}}}

    refusal = helm.refusal(*values_file(tmp_path, values))

    assert "prometheusRule.alerts.TemperGone: there is no such alert" in refusal
    assert "TemperAgentDown" in refusal


def test_there_are_no_alerts_of_a_webhook_that_is_not_installed(helm):
    rendered = helm.render("--set", "prometheusRule.enabled=true")

    text = yaml.safe_dump(rendered.get("PrometheusRule", "temper"))
    assert "TemperAgentDown" in text
    assert "TemperWebhook" not in text
