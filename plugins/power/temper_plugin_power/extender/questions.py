"""A question of kube-scheduler: a pod, and its candidate nodes by name or as whole objects."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from temper_core import InputError
from temper_plugin_power.extender.parts import NAMES, NODE, NODES, POD, parts_of
from temper_plugin_power.resources.fields import text_at, value_at

MOST_NODES = 50_000
LONGEST_NAME = 253
"""The API server's bound for the name of a node."""
MOST_LABELS, MOST_LABEL_CHARACTERS = 500_000, 16 * 1024 * 1024
"""Labels of all nodes together. 5,000 nodes with 100 labels each have as many."""
LONGEST_KEY, LONGEST_VALUE = 317, 63
"""The API server's bounds for a label. Both are ASCII."""
TURN_S = 0.005
"""After so long other tasks of the event loop run."""


@frozen
class Question:
    """A pod object and the names of its candidate nodes.

    *labels* are those of the nodes, if the question has whole nodes. They are None if it has names.
    """

    pod: Mapping[str, Any]
    names: Sequence[str]
    labels: Sequence[Mapping[str, str]] | None = None


async def read_question(body: bytes) -> Question:
    """Read ExtenderArgs. Other tasks run meanwhile. Raises InputError for anything else."""
    reader = _Reader()
    await give_parts(body, reader.take)
    return reader.question()


async def give_parts(body: bytes, take: Callable[[str, Any], None]) -> None:
    """Give *take* each part of *body*. Other tasks run meanwhile. Raises InputError."""
    turn_ends = time.monotonic() + TURN_S
    for part, value in parts_of(body):
        take(part, value)
        if time.monotonic() > turn_ends:
            await asyncio.sleep(0)
            turn_ends = time.monotonic() + TURN_S


def checked_pod(value: object) -> Mapping[str, Any]:
    """Return the pod of a question. Raises InputError for anything else."""
    if not isinstance(value, dict):
        raise InputError("pod: must be a Pod object")
    return value


@define(eq=False)
class _Reader:
    """Takes the parts of a question."""

    _pod: Any = None
    _names: Any = None
    _has_nodes: bool = False
    _node_names: list[str] = field(factory=list)
    _labels: list[Mapping[str, str]] = field(factory=list)
    _count: int = 0
    _characters: int = 0

    def take(self, part: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        """Take a part. Raises InputError for nodes that are none."""
        if part == POD:
            self._pod = value
        elif part == NAMES:
            self._names = value
        elif part == NODES:
            if not isinstance(value, dict | None):
                raise InputError("nodes: must be a NodeList")
            self._has_nodes = self._has_nodes or value is not None
        elif part == NODE:
            self._take_node(value)

    def question(self) -> Question:
        """Return the question. Whole nodes win over names."""
        pod = checked_pod(self._pod)
        if self._has_nodes:
            return Question(pod, self._node_names, self._labels)
        return Question(pod, _checked([] if self._names is None else self._names))

    def _take_node(self, item: object) -> None:
        name = text_at(item, "metadata.name")
        if not name or len(name) > LONGEST_NAME:
            raise InputError(
                f"nodes.items: a node has no name of at most {LONGEST_NAME} characters"
            )
        if len(self._node_names) >= MOST_NODES:
            raise InputError(f"nodes.items: must be at most {MOST_NODES}")
        self._node_names.append(name)
        self._take_labels(texts(value_at(item, "metadata.labels")))

    def _take_labels(self, table: Mapping[str, str]) -> None:
        """Keep the labels that an API server takes. Raises InputError for too many."""
        labels = {key: value for key, value in table.items() if _is_label(key, value)}
        self._count += len(labels)
        self._characters += sum(len(key) + len(value) for key, value in labels.items())
        if self._count > MOST_LABELS or self._characters > MOST_LABEL_CHARACTERS:
            raise InputError(f"nodes.items: must have at most {MOST_LABELS} labels, of 16 MiB")
        self._labels.append(labels)


def texts(table: object) -> Mapping[str, str]:
    """Return the texts of a table of labels or annotations."""
    if not isinstance(table, Mapping):
        return {}
    return {key: value for key, value in table.items() if isinstance(value, str)}


def _is_label(key: str, value: str) -> bool:
    within = len(key) <= LONGEST_KEY and len(value) <= LONGEST_VALUE
    return within and key.isascii() and value.isascii()


def _checked(names: object) -> Sequence[str]:
    if not isinstance(names, list):
        raise InputError("nodenames: must be a list of names")
    if len(names) > MOST_NODES:
        raise InputError(f"nodenames: must be at most {MOST_NODES}")
    if not all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in names):
        raise InputError(f"nodenames: must be texts of at most {LONGEST_NAME} characters")
    return names
