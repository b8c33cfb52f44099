"""What a plugin declares of itself: the table of its settings, and the families of its metrics."""

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
    """The settings of a plugin that has none: its table may be empty, but has no keys."""


@frozen
class SettingsTable:
    """The table ``[plugins.<name>]`` of a plugin: an attrs class whose fields all have defaults.

    ``metadata["help"]`` of a field says in a sentence what it means; ``setting()`` writes it.
    Without *model*, every key of the table is refused.
    """

    model: type[Any] = field(default=NoSettings, validator=_is_model)

    @property
    def name(self) -> str:
        """The one name that a plugin's table has."""
        return "settings"


@frozen
class PanelHint:
    """How a family is drawn on a dashboard; families of one title share a panel.

    Attributes:
        title: The panel's title.
        unit: The unit of the values that are drawn.
        board: The dashboard: ``fleet``, ``node`` or ``pod``.
        query: PromQL in place of what the family's kind suggests; ``{@}`` selects what the
            dashboard shows.
        legend: What a line is called; ``{{label}}`` stands for the value of a label.

    """

    title: str = field(validator=matches_re(r".+"))
    unit: str = field(default="none", validator=in_(UNITS))
    board: str = field(default="node", validator=in_(BOARDS))
    query: str = field(default="", validator=instance_of(str))
    legend: str = field(default="", validator=instance_of(str))


@frozen
class MetricFamily:
    """A family of metrics that a plugin exports, known without opening or calling the exporter.

    Attributes:
        name: As it is exported: with ``temper_`` before, and ``_total`` after a counter.
        help: A sentence on what the value means.
        kind: ``gauge``, ``counter`` or ``histogram``.
        labels: The names of its labels.
        panels: How dashboards draw it; without one it is drawn by its kind, on the node's.
        service: The service that exports it; empty for the agent.

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
        """Refuse a counter whose exported name would be another one."""
        if (self.kind == "counter") != self.name.endswith("_total"):
            raise ValueError(f"{self.name}: a counter, and nothing else, ends with '_total'")

    def metric(self, samples: Sequence[MetricSample]) -> Metric:
        """Return the family with *samples*, as an exporter yields it."""
        return Metric(self.name, self.help, samples, self.kind)
