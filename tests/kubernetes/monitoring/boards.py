"""The dashboards as they are committed, and what they ask."""

import json
import re

from attrs import frozen

from deploy.monitoring.writing import FILES

INSTEAD = {
    "$__rate_interval": "15s",
    "$__interval": "15s",
    "$__range": "1m",
}
VARIABLE = re.compile(r"\$\{?([a-z_]+)(?::[a-z]+)?\}?")


@frozen
class Asked:
    """A query of a panel."""

    board: str
    panel: str
    number: int
    query: str
    legend: str

    @property
    def name(self):
        return f"{self.board} / {self.panel}"

    def with_values(self, values):
        """Return the query as Grafana sends it where the variables have *values*."""
        query = self.query
        for name, value in INSTEAD.items():
            query = query.replace(name, value)
        return VARIABLE.sub(lambda found: values[found[1]], query)


def boards():
    """Return the dashboards by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FILES.glob("*.json"))}


def panels(board):
    """Yield all panels, those of closed rows too."""
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", ())


def asked():
    """Return every query of every panel."""
    return [
        Asked(name, panel["title"], panel["id"], target["expr"], target["legendFormat"])
        for name, board in boards().items()
        for panel in panels(board)
        for target in panel.get("targets", ())
    ]
