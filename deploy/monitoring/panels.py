"""A panel of a dashboard, and its JSON. Its description includes the help of its metrics."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import evolve, field, frozen

from deploy.monitoring.queries import check_names, families_in

Json = dict[str, Any]
DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
"""Columns of a dashboard."""


class Unit(StrEnum):
    """Units as Grafana names them."""

    NONE = "short"
    SECONDS = "s"
    BYTES = "bytes"
    RATIO = "percentunit"
    CPUS = "suffix: CPUs"
    PER_SECOND = "suffix: /s"
    PER_HOUR = "suffix: /h"


class Colour(StrEnum):
    """Colours of Grafana's palette by meaning."""

    GOOD = "green"
    BUSY = "blue"
    ODD = "yellow"
    WARNING = "orange"
    BAD = "red"
    PLAIN = "text"


@frozen
class Query:
    """One query of a panel. ``@`` stands for the dashboard's own selection.

    ``at_once`` requests only the newest value.
    """

    text: str
    legend: str = ""
    at_once: bool = False

    def expression(self, selection: str) -> str:
        """Return the query as PromQL."""
        return self.text.replace("@", selection)

    def target(self, selection: str, ref: str, shape: str = "time_series") -> Json:
        """Return the query as JSON. *ref* is unique in the panel."""
        expression = self.expression(selection)
        check_names(expression, self.legend)
        return {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": expression,
            "format": shape,
            "instant": self.at_once,
            "legendFormat": self.legend or "__auto",
            "range": not self.at_once,
            "refId": ref,
        }


@frozen
class Panel:
    """The fields of all panels. ``look`` are Grafana's options, ``field_look`` its field options.

    ``about`` explains the panel. The meanings of the metrics come from their help.
    """

    title: str
    queries: tuple[Query, ...]
    about: str = ""
    kind: str = "timeseries"
    unit: Unit = Unit.NONE
    width: int = 8
    height: int = 7
    look: Mapping[str, Any] = field(factory=dict)
    field_look: Mapping[str, Any] = field(factory=dict)
    overrides: tuple[Json, ...] = ()
    transformations: tuple[Json, ...] = ()
    shape: str = "time_series"

    def json(self, selection: str, number: int, place: Json) -> Json:
        """Return the panel. Raises UnknownNameError for a metric that is not exported."""
        targets = [
            query.target(selection, chr(ord("A") + n), self.shape)
            for n, query in enumerate(self.queries)
        ]
        panel = {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self._description(),
            "datasource": DATASOURCE,
            "gridPos": place,
            "fieldConfig": {
                "defaults": {"unit": self.unit.value, **self.field_look},
                "overrides": list(self.overrides),
            },
            "options": dict(self.look),
            "targets": targets,
        }
        if self.transformations:
            panel["transformations"] = list(self.transformations)
        return panel

    def _description(self) -> str:
        helps = {
            family.name: f"`{family.name}`: {family.help}"
            for query in self.queries
            for family in families_in(query.text)
        }
        return "\n\n".join(part for part in (self.about, "\n".join(helps.values())) if part)


def lines(title: str, *queries: Query, unit: Unit = Unit.NONE, **given: Any) -> Panel:  # noqa: ANN401 - Panel's fields
    """Draw lines over time. The legend is a table with the newest and the greatest value."""
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 8, "showPoints": "never"}
    panel = Panel(title, queries, unit=unit, **given)
    own: Json = {"color": {"mode": "palette-classic"}, "custom": custom, "min": 0}
    look = {
        "legend": {
            "displayMode": "table",
            "placement": "bottom",
            "showLegend": True,
            "calcs": ["lastNotNull", "max"],
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return evolve(panel, look=look, field_look={**own, **panel.field_look})


def areas(title: str, *queries: Query, unit: Unit = Unit.NONE, **given: Any) -> Panel:  # noqa: ANN401 - Panel's fields
    """Draw stacked areas."""
    panel = lines(title, *queries, unit=unit, **given)
    custom = {
        **panel.field_look["custom"],
        "fillOpacity": 40,
        "stacking": {"mode": "normal", "group": "A"},
    }
    return evolve(panel, field_look={**panel.field_look, "custom": custom})


def steps(title: str, *queries: Query, **given: Any) -> Panel:  # noqa: ANN401 - Panel's fields
    """Draw occasional events as bars."""
    panel = areas(title, *queries, **given)
    custom = {**panel.field_look["custom"], "drawStyle": "bars", "fillOpacity": 70}
    return evolve(panel, field_look={**panel.field_look, "custom": custom})


def with_ceiling(panel: Panel, legend: str) -> Panel:
    """Draw the series of that legend as a dashed, unstacked line."""
    looks = {
        "custom.lineStyle": {"fill": "dash", "dash": [8, 6]},
        "custom.fillOpacity": 0,
        "custom.lineWidth": 2,
        "custom.stacking": {"mode": "none", "group": "A"},
        "color": {"mode": "fixed", "fixedColor": Colour.BAD.value},
    }
    matcher = {"id": "byName", "options": legend}
    return evolve(panel, overrides=(*panel.overrides, _override(matcher, looks)))


def number(
    title: str,
    query: Query,
    *,
    limits: tuple[tuple[float, Colour], ...] = (),
    **given: Any,  # noqa: ANN401 - Panel's fields
) -> Panel:
    """Show one number, coloured from each of the *limits* on."""
    own = {"color": {"mode": "thresholds"}, "thresholds": thresholds(*limits)}
    look = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": True,
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    panel = Panel(
        title, (evolve(query, at_once=True),), kind="stat", **{"width": 3, "height": 4, **given}
    )
    return evolve(panel, look=look, field_look={**own, **panel.field_look})


def words(title: str, query: Query, **given: Any) -> Panel:  # noqa: ANN401 - Panel's fields
    """Show the query's legend, which is a label's value."""
    panel = number(title, query, **given)
    return evolve(panel, look={**panel.look, "textMode": "name"})


def timeline(title: str, *queries: Query, mappings: list[Json], **given: Any) -> Panel:  # noqa: ANN401 - Panel's fields
    """Show states over time, one line per series."""
    own: Json = {
        "color": {"mode": "thresholds"},
        "custom": {"fillOpacity": 80, "lineWidth": 0},
        "mappings": mappings,
        "thresholds": thresholds(),
    }
    look = {
        "alignValue": "left",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "mergeValues": True,
        "rowHeight": 0.9,
        "showValue": "auto",
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return Panel(title, queries, kind="state-timeline", look=look, field_look=own, **given)


def heat(title: str, query: Query, **given: Any) -> Panel:  # noqa: ANN401 - Panel's fields
    """Draw a histogram over time, with buckets in seconds."""
    look = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "tooltip": {"mode": "single", "yHistogram": True},
        "yAxis": {"axisPlacement": "left", "unit": Unit.SECONDS.value},
    }
    return Panel(title, (query,), kind="heatmap", shape="heatmap", look=look, **given)


def bars(title: str, query: Query, **given: Any) -> Panel:  # noqa: ANN401 - Panel's fields
    """Show the newest values as bars, greatest first."""
    look = {
        "displayMode": "basic",
        "orientation": "horizontal",
        "showUnfilled": True,
        "valueMode": "color",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    own = {"color": {"mode": "continuous-BlYlRd"}, "min": 0}
    return Panel(
        title, (evolve(query, at_once=True),), kind="bargauge", look=look, field_look=own, **given
    )


def thresholds(*limits: tuple[float, Colour]) -> Json:
    """Colour values from each limit on. Smaller values are plain."""
    steps = [{"color": Colour.PLAIN.value, "value": None}]
    return {
        "mode": "absolute",
        "steps": [*steps, *({"color": c.value, "value": v} for v, c in limits)],
    }


def named_values(*names: tuple[float, str, Colour]) -> list[Json]:
    """Show values as coloured words."""
    options = {
        f"{value:g}": {"text": text, "color": colour.value, "index": n}
        for n, (value, text, colour) in enumerate(names)
    }
    return [{"type": "value", "options": options}]


def _override(matcher: Json, looks: Mapping[str, Any]) -> Json:
    properties = [{"id": name, "value": value} for name, value in looks.items()]
    return {"matcher": matcher, "properties": properties}
