"""Generates the tables of metrics from their exporters. Cog writes them into ``metrics.md``."""

from collections import Counter
from collections.abc import Iterator

from temper_core import Exporter, Metric
from temper_core.metrics.families import FAMILIES
from temper_core.metrics.families.reading import Described, Per
from temper_core.plugin_host import load_host
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import make_snapshot

EXAMPLE = {Per.LAYER: 16, Per.POD: 50, Per.PLUGIN: 5, Per.INVARIANT: 12, Per.PROFILE: 0}
"""A typical large node. The engine has at most 16 layers."""
FIRST_PARTY = ("builtin-profiles", "kubernetes", "linter")
"""The plugins that come with the core, by name."""


def metrics_reference() -> str:
    """Render every family of the core with its type, labels, unit and meaning."""
    head = "| metric | type | labels | unit | meaning | absent | series, at most |"
    rows = [_row(family) for family in sorted(FAMILIES, key=lambda family: family.name)]
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- | --- |", *rows])


def plugin_metrics() -> str:
    """Render every family that the first-party plugins export."""
    rows = [
        f"| `{metric.name}` | {metric.kind} | {_labels_of(metric)} | {plugin} | {metric.help} |"
        for plugin, metric in sorted(_exported(), key=lambda pair: pair[1].name)
    ]
    head = ["| metric | type | labels | plugin | meaning |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def _exported() -> Iterator[tuple[str, Metric]]:
    host = load_host(Settings(plugin_host=PluginHostSettings(allow=FIRST_PARTY, strict=True)))
    snapshot = make_snapshot(invariants=("smt_collision",))
    for contribution in host.gather("temper_exporters", Exporter):
        for metric in host.call(contribution.plugin, contribution.record.collect, snapshot):
            yield contribution.plugin, metric


def _labels_of(metric: Metric) -> str:
    names = dict.fromkeys(name for sample in metric.samples for name in sample.labels)
    return ", ".join(f"`{name}`" for name in names) or "none"


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
