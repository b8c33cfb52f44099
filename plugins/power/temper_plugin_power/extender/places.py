"""One node as the extender knows it, with what its answers need computed once."""

import json
import math

from attrs import define, field, frozen

from temper_plugin_power.operating.twin import Hardware, Twin
from temper_plugin_power.placing.rejecting import rejection_cause
from temper_plugin_power.placing.scoring import NodeFigures, NodeKind

MOST_KINDS = 1000
"""Kinds of nodes that share what is computed of them for a pod. More of them cost time only."""


@frozen
class TwinReport:
    """The state of a node, and the time of that report in seconds since the epoch."""

    twin: Twin
    told_at: float = -math.inf


@define(eq=False)
class NodeKinds:
    """Gives nodes of one class and hardware the same ``NodeKind``."""

    _known: dict[tuple[str, Hardware | None, float | None], NodeKind] = field(
        factory=dict, init=False
    )

    def of(
        self, node_class: str, hardware: Hardware | None, measured_pue: float | None = None
    ) -> NodeKind:
        """Return the kind of such nodes."""
        if len(self._known) >= MOST_KINDS:
            self._known.clear()
        known = (node_class, hardware, measured_pue)
        return self._known.setdefault(known, NodeKind(*known))


@define(eq=False)
class Place:
    """One node. Unknown values are None."""

    name: str
    report: TwinReport | None = None
    hardware: Hardware | None = None
    label: str | None = None
    """The node label ``power-profile``, empty without one."""
    told_at: float = -math.inf
    figures: NodeFigures | None = None
    head: str = field(init=False)
    """The start of its entry in an answer, up to the score."""

    @head.default
    def _write_head(self) -> str:
        return head_of(self.name)

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known."""
        return self.report is None and self.hardware is None and self.label is None

    @property
    def node_class(self) -> str:
        """The class of its twin, fresh or not."""
        return "unknown" if self.report is None else self.report.twin.schedulable_class

    def is_fresh(self, oldest: float, newest: float) -> bool:
        """Whether its twin was updated between these times."""
        return oldest <= self.told_at <= newest

    def rejection_cause(self, *, is_fresh: bool) -> str | None:
        """Return why it takes no performance pods while its twin *is_fresh* or not."""
        return rejection_cause(self.node_class, self.label or "", is_fresh=is_fresh)

    def reckon(self, kinds: NodeKinds) -> None:
        """Compute what follows from a change."""
        if self.report is None:
            self.figures, self.told_at = None, -math.inf
            return
        twin = self.report.twin
        kind = kinds.of(twin.schedulable_class, self.hardware, twin.measured_pue)
        self.figures, self.told_at = NodeFigures.of(twin, kind), self.report.told_at


def head_of(name: str) -> str:
    """Return the start of a node's entry in an answer to /prioritize."""
    return f'{{"host": {json.dumps(name)}, "score": '
