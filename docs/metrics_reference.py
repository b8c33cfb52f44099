"""Generates the tables of metrics from their exporters. Cog writes them into ``metrics.md``."""

from collections import Counter

from temper_core import MetricFamily
from temper_core.metrics.families import FAMILIES
from temper_core.metrics.families.reading import Described, Per
from temper_core.plugin_host.first_party import first_party_host

EXAMPLE = {Per.LAYER: 16, Per.POD: 50, Per.PLUGIN: 5, Per.INVARIANT: 12, Per.PROFILE: 0}
"""A node as large as one usually gets; the engine has no more than 16 layers."""


def metrics_reference() -> str:
    """Render every family of the core with its type, labels, unit and meaning."""
    head = "| metric | type | labels | unit | meaning | absent | series, at most |"
    rows = [_row(family) for family in sorted(FAMILIES, key=lambda family: family.name)]
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- | --- |", *rows])


def plugin_metrics() -> str:
    """Render every family that an installed first-party plugin declares."""
    declared = first_party_host().gather("temper_metrics", MetricFamily)
    rows = [
        _plugin_row(each.plugin, each.record)
        for each in sorted(declared, key=lambda each: each.record.name)
    ]
    head = "| metric | type | labels | plugin | exported by | meaning |"
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- |", *rows])


def _plugin_row(plugin: str, family: MetricFamily) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "none"
    exported_by = family.service or "the agent"
    cells = (f"`{family.name}`", family.kind, labels, plugin, exported_by, family.help)
    return f"| {' | '.join(cells)} |"


def series_bound() -> str:
    """Return the largest number of series of a node, as a formula and for an example."""
    most: Counter[Per] = Counter()
    for family in FAMILIES:
        most[family.per] += family.most
    terms = [f"{most[per]} per {per.value}" for per in Per if per is not Per.NODE]
    example = most[Per.NODE] + sum(most[per] * count for per, count in EXAMPLE.items())
    counts = ", ".join(f"{count} {per.value}s" for per, count in EXAMPLE.items() if count)
    return (
        f"At most {most[Per.NODE]} series, and {', '.join(terms)}, without those of plugins. "
        f"With {counts} the bound is {example}."
    )


def _row(family: Described) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "none"
    most = str(family.most) if family.per is Per.NODE else f"{family.most} per {family.per.value}"
    cells = (
        f"`{family.name}`",
        family.kind,
        labels,
        family.unit or "none",
        family.help,
        family.absent,
        most,
    )
    return f"| {' | '.join(cells)} |"
