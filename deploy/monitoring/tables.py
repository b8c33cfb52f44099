"""Tables: one row per combination of labels, a column per query, and links to dashboards."""

from typing import Any

from attrs import evolve, frozen

from deploy.monitoring.panels import Json, Panel, Query, Unit, thresholds


@frozen
class Column:
    """A column of a table: a query with one value per row.

    With a ``label`` the column shows that label instead of the value.
    """

    title: str
    query: str
    unit: Unit = Unit.NONE
    label: str = ""
    mappings: tuple[Json, ...] = ()
    limits: tuple[tuple[float, Any], ...] = ()


def table(
    title: str,
    *columns: Column,
    links: dict[str, str],
    names: dict[str, str],
    first: str = "",
    **given: Any,  # noqa: ANN401 - Panel's fields
) -> Panel:
    """Show at least two *columns*, with a row for each combination of labels.

    *names* are titles of the shown labels, *links* the targets of a label's cells. Rows are sorted
    by the column *first*, greatest first.
    """
    queries = tuple(Query(column.query, at_once=True) for column in columns)
    organised = {
        "id": "organize",
        "options": {
            "excludeByName": {"Time": True, **_hidden(columns)},
            "indexByName": _order(columns, names),
            "renameByName": {**names, **_titles(columns)},
        },
    }
    looks = [*(_linked(names[label], url) for label, url in links.items()), *_looks(columns)]
    panel = Panel(title, queries, kind="table", shape="table", **given)
    return evolve(
        panel,
        look={"cellHeight": "sm", "showHeader": True, "sortBy": _sorted_by(first)},
        field_look={"custom": {"align": "auto", "filterable": True}},
        overrides=tuple(looks),
        transformations=({"id": "merge", "options": {}}, organised),
    )


def _field(number: int) -> str:
    return f"Value #{chr(ord('A') + number)}"


def _sorted_by(title: str) -> list[Json]:
    return [{"displayName": title, "desc": True}] if title else []


def _hidden(columns: tuple[Column, ...]) -> dict[str, bool]:
    return {_field(n): True for n, column in enumerate(columns) if column.label}


def _titles(columns: tuple[Column, ...]) -> dict[str, str]:
    return {column.label or _field(n): column.title for n, column in enumerate(columns)}


def _order(columns: tuple[Column, ...], names: dict[str, str]) -> dict[str, int]:
    fields = [*names, *(column.label or _field(n) for n, column in enumerate(columns))]
    return {name: place for place, name in enumerate(fields)}


def _linked(title: str, url: str) -> Json:
    links = [{"title": "Look closer", "url": url}]
    return {
        "matcher": {"id": "byName", "options": title},
        "properties": [{"id": "links", "value": links}],
    }


def _looks(columns: tuple[Column, ...]) -> list[Json]:
    return [
        {"matcher": {"id": "byName", "options": column.title}, "properties": _properties(column)}
        for column in columns
        if not column.label
    ]


def _properties(column: Column) -> list[Json]:
    properties: list[Json] = [{"id": "unit", "value": column.unit.value}]
    if column.mappings:
        properties.append({"id": "mappings", "value": list(column.mappings)})
    if column.limits:
        properties.append({"id": "thresholds", "value": thresholds(*column.limits)})
    if column.mappings or column.limits:
        properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
    return properties
