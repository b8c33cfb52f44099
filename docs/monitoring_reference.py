"""Generates the tables of alerts and dashboards from the chart's files. Cog writes them."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

_TEMPLATE = re.compile(r"\{\{ (?:\$labels\.(\w+)|\$value[^}]*) \}\}")
FILES = Path(__file__).parents[1] / "deploy/helm/temper/files"


def alerts_reference() -> str:
    """Render every alert: its delay, its severity, its summary and its runbook."""
    head = "| alert | severity | after | summary | remedy |"
    groups = yaml.safe_load((FILES / "rules/alerts.yaml").read_text())["groups"]
    rows = [_alert(rule) for group in groups for rule in group["rules"]]
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *rows])


def dashboards_reference() -> str:
    """Render every dashboard with its rows."""
    rows = [_dashboard(path) for path in sorted(FILES.glob("dashboards/*.json"))]
    return "\n".join(["| dashboard | file | choices | rows |", "| --- | --- | --- | --- |", *rows])


def _alert(rule: dict[str, Any]) -> str:
    _, _, section = rule["annotations"]["runbook_url"].partition("#")
    summary = _TEMPLATE.sub(
        lambda matched: f"*{matched[1] or 'so much'}*", rule["annotations"]["summary"]
    )
    cells = (
        f"`{rule['alert']}`",
        rule["labels"]["severity"],
        rule["for"],
        summary,
        f"[runbook](runbook.md#{section})",
    )
    return f"| {' | '.join(cells)} |"


def _dashboard(path: Path) -> str:
    board = json.loads(path.read_text())
    choices = ", ".join(item["label"].lower() for item in board["templating"]["list"])
    rows = ", ".join(item["title"] for item in board["panels"] if item["type"] == "row")
    return f"| {board['title']} | `{path.name}` | {choices} | {rows} |"
