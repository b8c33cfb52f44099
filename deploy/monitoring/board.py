"""A dashboard: rows of panels, variables, and links to the other dashboards."""

from collections.abc import Iterator

from attrs import field, frozen

from deploy.monitoring.panels import DATASOURCE, WIDTH, Json, Panel
from deploy.monitoring.queries import check_names

SCHEMA = 39
"""The version of the dashboard format. 39 is that of Grafana 10.4 and 11, which later ones read."""
TAG = "temper"


@frozen
class Choice:
    """A variable whose values are those of ``label`` in ``series``.

    It has one value, or with ``many`` any number of values, initially all.
    """

    name: str
    title: str
    label: str
    series: str
    many: bool = False

    def json(self) -> Json:
        """Return the variable. Raises UnknownNameError for a series that is not exported."""
        check_names(self.series, f"{{{{{self.label}}}}}")
        query = f"label_values({self.series}, {self.label})"
        variable: Json = {
            "name": self.name,
            "label": self.title,
            "type": "query",
            "datasource": DATASOURCE,
            "query": {"qryType": 1, "query": query, "refId": f"variable-{self.name}"},
            "refresh": 2,
            "sort": 5,
            "includeAll": self.many,
            "multi": self.many,
            "options": [],
        }
        if self.many:
            variable |= {"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}}
        return variable


@frozen
class Row:
    """Panels under one title. A ``closed`` row is collapsed initially."""

    title: str
    panels: tuple[Panel, ...]
    closed: bool = False


@frozen
class Board:
    """One dashboard. ``selection`` replaces ``@`` in its queries.

    ``nodes`` selects the nodes whose configuration changes it marks.
    """

    uid: str
    title: str
    about: str
    selection: str
    nodes: str
    choices: tuple[Choice, ...]
    rows: tuple[Row, ...]
    links: tuple[Json, ...] = field(factory=tuple)

    def json(self) -> Json:
        """Return the dashboard as Grafana imports it."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.about,
            "tags": [TAG],
            "schemaVersion": SCHEMA,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "1m",
            "time": {"from": "now-3h", "to": "now"},
            "timezone": "browser",
            "templating": {"list": [_datasource(), *(choice.json() for choice in self.choices)]},
            "links": list(self.links),
            "annotations": {"list": [_changes(self.nodes)]},
            "panels": list(self._panels()),
        }

    def _panels(self) -> Iterator[Json]:
        number, top = 1, 0
        for row in self.rows:
            head = _head(row, number, top)
            places = list(_placed(row.panels, top + 1))
            top = max((place["y"] + place["h"] for place in places), default=top + 1)
            panels = [
                panel.json(self.selection, number + 1 + n, place)
                for n, (panel, place) in enumerate(zip(row.panels, places, strict=True))
            ]
            number += 1 + len(panels)
            yield {**head, "panels": panels if row.closed else []}
            if not row.closed:
                yield from panels
            else:
                top = head["gridPos"]["y"] + 1


def _head(row: Row, number: int, top: int) -> Json:
    place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": row.closed,
        "gridPos": place,
    }


def _placed(panels: tuple[Panel, ...], top: int) -> Iterator[Json]:
    """Place panels from left to right. A line is as high as its highest panel."""
    left, high = 0, 0
    for panel in panels:
        if left + panel.width > WIDTH:
            left, top, high = 0, top + high, 0
        yield {"x": left, "y": top, "w": panel.width, "h": panel.height}
        left, high = left + panel.width, max(high, panel.height)


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "options": [],
    }


def _changes(nodes: str) -> Json:
    query = f"changes(temper_config_generation{{{nodes}}}[$__interval]) > 0"
    check_names(query)
    return {
        "name": "New configuration",
        "datasource": DATASOURCE,
        "enable": False,
        "hide": False,
        "iconColor": "blue",
        "expr": query,
        "titleFormat": "New configuration on {{instance}}",
        "step": "1m",
    }


def link(title: str, uid: str, *kept: str) -> Json:
    """Return a link to another dashboard, with the time range and the *kept* variables."""
    return {
        "title": title,
        "type": "link",
        "url": path_to(uid, *kept),
        "keepTime": True,
        "targetBlank": False,
        "icon": "dashboard",
        "tooltip": "",
        "tags": [],
        "asDropdown": False,
        "includeVars": False,
    }


def path_to(uid: str, *kept: str, **set_to: str) -> str:
    """Return the path of a dashboard with *kept* variables, and others that are set."""
    choices = [*(f"${{{name}:queryparam}}" for name in ("datasource", "cluster", *kept))]
    choices += [f"var-{name}={value}" for name, value in set_to.items()]
    return f"/d/{uid}/{uid}?{'&'.join(choices)}"


def cell_path_to(uid: str, *kept: str, **set_to: str) -> str:
    """Return the same for a cell's link, with the time range."""
    return f"{path_to(uid, *kept, **set_to)}&${{__url_time_range}}"
