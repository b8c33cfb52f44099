"""The runbook has an answer to every alert, and what it tells to type is there."""

import re
from pathlib import Path

import click
import pytest
import yaml

from temper_core.cli.main import CORE_COMMANDS, temper
from temper_plugin_kubernetes.operators.command import command

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/runbook.md").read_text()
HEADINGS = {each.strip() for each in re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)}
RULES = ROOT / "deploy/helm/temper/files/rules/alerts.yaml"
PUBLISHED = (
    "TemperAgentDown",
    "TemperNotEnforcing",
    "TemperLintPersistent",
    "TemperUnexpectedSafeMode",
    "TemperReloadStorm",
    "TemperOverBudget",
    "TemperPodsStale",
    "TemperWebhookDown",
)


@pytest.mark.parametrize("alert", PUBLISHED)
def test_every_published_alert_has_a_heading_of_its_name(alert):
    assert alert in HEADINGS


def test_every_link_of_the_rules_leads_to_a_heading():
    groups = yaml.safe_load(RULES.read_text())["groups"]
    links = {
        rule["annotations"]["runbook_url"].partition("#")[2]
        for group in groups
        for rule in group["rules"]
        if "alert" in rule
    }

    assert links <= {each.lower() for each in HEADINGS}


def options_of(found):
    return {name for parameter in found.params for name in (*parameter.opts, "--help")}


@pytest.mark.parametrize("line", sorted(set(re.findall(r"kubectl temper ([a-z][^`\n#|]*)", TEXT))))
def test_every_kubectl_temper_that_is_told_is_there(line):
    name, *arguments = line.split()

    found = command.get_command(click.Context(command), name)

    assert found is not None, name
    assert {each for each in arguments if each.startswith("--")} <= options_of(found)


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`temper ([a-z][a-z0-9-]*)", TEXT)) - {"k8s"})
)
def test_every_temper_that_is_told_is_there(name):
    assert temper.get_command(click.Context(temper), name) is not None
    assert name in {*CORE_COMMANDS, "diff", "lint", "map", "top"}
