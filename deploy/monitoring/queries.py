"""Checks the series and labels that a PromQL query names: all of them must be exported."""

import re
from collections.abc import Iterator

from attrs import frozen

from deploy.monitoring.catalogue import HISTOGRAM, OF_THE_TARGET, SUFFIXES, Known, family_of

SERIES = re.compile(r"\btemper_[a-z0-9_]+\b")
SELECTED = re.compile(r"\b(temper_[a-z0-9_]+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
MATCHER = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)")
LEGEND = re.compile(r"\{\{\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*\}\}")
MADE = re.compile(r'\blabel_(?:replace|join)\s*\([^"]*"([a-z_]+)"', re.DOTALL)
"""The label that label_replace or label_join makes."""


class UnknownNameError(ValueError):
    """A query names a series or label that is not exported."""


def families_in(query: str) -> list[Known]:
    """Return the families that *query* reads, in the order of their first mention.

    Raises UnknownNameError for a series that is not exported.
    """
    families: dict[str, Known] = {}
    for series in SERIES.findall(_without_strings(query)):
        family = family_of(series)
        if family is None:
            raise UnknownNameError(f"{query!r}: nothing exports {series}")
        families.setdefault(family.name, family)
    return list(families.values())


def check_names(query: str, legend: str = "") -> None:
    """Raise UnknownNameError if *query* or its *legend* names an unknown series or label."""
    for selection in _selections(query):
        for label in selection.unknown():
            raise UnknownNameError(f"{query!r}: {selection.series} has no label {label!r}")
    known = _labels_of(query)
    labels = [
        label.strip()
        for group in GROUPED.findall(_without_strings(query))
        for label in group.split(",")
        if label.strip()
    ]
    for label in (*labels, *LEGEND.findall(legend)):
        if label not in known:
            raise UnknownNameError(f"{query!r} ({legend!r}): no series in it has a label {label!r}")


@frozen
class _Selection:
    """A series and the labels it is selected by."""

    series: str
    labels: tuple[str, ...]

    def unknown(self) -> Iterator[str]:
        family = family_of(self.series)
        allowed = OF_THE_TARGET if family is None else _labels(self.series, family)
        return (label for label in self.labels if label not in allowed)


def _selections(query: str) -> Iterator[_Selection]:
    families_in(query)
    for series, matchers in SELECTED.findall(_without_strings(query)):
        yield _Selection(series, tuple(MATCHER.findall(matchers)))


def _labels(series: str, family: Known) -> frozenset[str]:
    buckets = {"le"} if family.kind == HISTOGRAM and series.endswith(SUFFIXES[0]) else set()
    return OF_THE_TARGET | set(family.labels) | buckets


def _labels_of(query: str) -> frozenset[str]:
    known = set(OF_THE_TARGET) | set(MADE.findall(query))
    for family in families_in(query):
        known |= {*family.labels, *(("le",) if family.kind == HISTOGRAM else ())}
    return frozenset(known)


def _without_strings(query: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)
