"""The nodes of a cluster by their NodeTwins: ``temper power status``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from temper_plugin_power.operating.twin import Twin
from temper_plugin_power.placing.subjects import EARLY_S, OLD_AFTER_S
from temper_plugin_power.resources.reading import CUT, age_s, node_name, twin_at

CLASSES = ("performance", "eco", "draining", "unknown")


@frozen
class NodeRow:
    """A node. *age_s* is that of its twin, in seconds, None if it is not known."""

    node: str
    twin: Twin
    age_s: float | None

    @property
    def is_stale(self) -> bool:
        """Whether scores take the twin for unknown."""
        return self.age_s is None or not -EARLY_S <= self.age_s <= OLD_AFTER_S


def node_row(document: Mapping[str, Any], now: datetime) -> NodeRow:
    """Return the row of a NodeTwin. *now* is in UTC."""
    return NodeRow(node_name(document)[:CUT], twin_at(document), age_s(document, now))


def totals(rows: Sequence[NodeRow]) -> Mapping[str, int]:
    """Return how many nodes there are of each class, and how many are stale."""
    known = Counter(row.twin.schedulable_class for row in rows)
    counts = {name: known.get(name, 0) for name in CLASSES}
    return {"nodes": len(rows), **counts, "stale": sum(row.is_stale for row in rows)}
