"""The alerts and the dashboards as tables, taken from the chart's files. Cog writes them."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

_TEMPLATE = re.compile(r"\{\{ (?:\$labels\.(\w+)|\$value[^}]*) \}\}")
FILES = Path(__file__).parents[1] / "deploy/helm/temper/files"


def alerts_reference() -> str:
    """Render every alert: when it fires, how severe it is, and where to read on."""
    head = "| alert | severity | after | says | to do |"
    groups = yaml.safe_load((FILES / "rules/alerts.yaml").read_text())["groups"]
    rows = [_alert(rule) for group in groups for rule in group["rules"]]
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *rows])


def dashboards_reference() -> str:
    """Render every dashboard with its rows."""
    rows = [_dashboard(path) for path in sorted(FILES.glob("dashboards/*.json"))]
    return "\n".join(["| dashboard | file | choices | rows |", "| --- | --- | --- | --- |", *rows])


def _alert(rule: dict[str, Any]) -> str:
    _, _, section = rule["annotations"]["runbook_url"].partition("#")
    said = _TEMPLATE.sub(lambda found: f"*{found[1] or 'so much'}*", rule["annotations"]["summary"])
    cells = (
        f"`{rule['alert']}`",
        rule["labels"]["severity"],
        rule["for"],
        said,
        f"[runbook](runbook.md#{section})",
    )
    return f"| {' | '.join(cells)} |"


def _dashboard(path: Path) -> str:
    board = json.loads(path.read_text())
    choices = ", ".join(each["label"].lower() for each in board["templating"]["list"])
    rows = ", ".join(each["title"] for each in board["panels"] if each["type"] == "row")
    return f"| {board['title']} | `{path.name}` | {choices} | {rows} |"
