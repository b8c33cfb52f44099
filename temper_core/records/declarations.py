"""Declarations of a plugin: the table of its settings, and the families of its metrics."""

from collections.abc import Sequence
from typing import Any

import attrs
from attrs import field, frozen
from attrs.validators import deep_iterable, in_, instance_of, matches_re

from temper_core.records.contributions import Metric, MetricSample

KINDS = ("gauge", "counter", "histogram")
BOARDS = ("fleet", "node", "pod")
UNITS = ("none", "seconds", "bytes", "ratio", "cpus", "per_second", "per_hour", "yes_no")


def _is_model(_: object, __: object, model: Any) -> None:  # noqa: ANN401 - what a plugin returned
    if not (isinstance(model, type) and attrs.has(model)):
        raise TypeError(f"a settings model is an attrs class, not {model!r}")
    attrs.resolve_types(model)
    for setting in attrs.fields(model):
        if setting.default is attrs.NOTHING:
            raise ValueError(f"the setting {setting.name!r} has no default")


@frozen
class NoSettings:
    """The settings of a plugin without any. Its table may exist, but must have no keys."""


@frozen
class SettingsTable:
    """The table ``[plugins.<name>]`` of a plugin: an attrs class whose fields all have defaults.

    ``metadata["help"]`` of a field is its meaning in a sentence. ``setting()`` sets it.
    Without *model*, every key of the table is refused.
    """

    model: type[Any] = field(default=NoSettings, validator=_is_model)

    @property
    def name(self) -> str:
        """The name of the table, the same for every plugin."""
        return "settings"


@frozen
class PanelHint:
    """A panel of a dashboard for a family. Families with the same title share a panel.

    Attributes:
        title: The panel's title.
        unit: The unit of the drawn values, one of ``UNITS``.
        board: The dashboard: ``fleet``, ``node`` or ``pod``.
        query: PromQL in place of the query for the family's kind. ``{@}`` stands for the label
            matchers of the dashboard.
        legend: The name of a line. ``{{label}}`` stands for the value of a label.

    """

    title: str = field(validator=matches_re(r".+"))
    unit: str = field(default="none", validator=in_(UNITS))
    board: str = field(default="node", validator=in_(BOARDS))
    query: str = field(default="", validator=instance_of(str))
    legend: str = field(default="", validator=instance_of(str))


@frozen
class MetricFamily:
    """A family of metrics of a plugin, declared without a call of the exporter.

    Attributes:
        name: The exported name. It begins with ``temper_``, and a counter's ends with ``_total``.
        help: The meaning of the value, as a sentence.
        kind: ``gauge``, ``counter`` or ``histogram``.
        labels: The names of its labels.
        panels: Its panels. Without any, the node's dashboard draws it by its kind.
        service: The service that exports it, empty for the agent.

    """

    name: str = field(validator=matches_re(r"temper_[a-z0-9_]+"))
    help: str = field(validator=matches_re(r"(?s).+"))
    kind: str = field(default="gauge", validator=in_(KINDS))
    labels: tuple[str, ...] = field(
        default=(),
        validator=deep_iterable(matches_re(r"[a-zA-Z_][a-zA-Z0-9_]*"), instance_of(tuple)),
    )
    panels: tuple[PanelHint, ...] = field(
        default=(), validator=deep_iterable(instance_of(PanelHint), instance_of(tuple))
    )
    service: str = field(default="", validator=instance_of(str))

    def __attrs_post_init__(self) -> None:
        """Raise ValueError unless exactly counters have a name that ends with ``_total``."""
        if (self.kind == "counter") != self.name.endswith("_total"):
            raise ValueError(f"{self.name}: a counter, and nothing else, ends with '_total'")

    def metric(self, samples: Sequence[MetricSample]) -> Metric:
        """Return the family with *samples*, as an exporter returns it."""
        return Metric(self.name, self.help, samples, self.kind)
