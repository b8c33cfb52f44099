"""A question of kube-scheduler about preemption: a pod, and the victims on each candidate node.

With ``nodeCacheCapable`` the victims are UIDs, otherwise whole pods. An answer has UIDs for both.
"""

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field, frozen

from temper_core import InputError
from temper_plugin_power.extender.parts import POD, VICTIMS, VICTIMS_OF
from temper_plugin_power.extender.questions import (
    LONGEST_NAME,
    MOST_NODES,
    checked_pod,
    give_parts,
)
from temper_plugin_power.resources.fields import text_at

MOST_OF_NODE = 10_000
"""Victims on one node, which are written in some 10 ms. Nodes of Kubernetes have some 100 pods."""
MOST_ANSWER = 16 * 1024 * 1024
"""Characters of all entries, which some 300,000 victims have."""
MOST_VIOLATIONS = 2**63 - 1
"""Go's int64. The scheduler could not read an answer with more."""


@frozen
class Preemption:
    """A pod object, and the entry of each candidate node as an answer has it."""

    pod: Mapping[str, Any]
    entries: Mapping[str, str]


async def read_preemption(body: bytes) -> Preemption:
    """Read ExtenderPreemptionArgs. Other tasks run meanwhile. Raises InputError otherwise."""
    reader = _Reader()
    await give_parts(body, reader.take)
    return reader.preemption()


@define(eq=False)
class _Reader:
    """Takes the parts of a question."""

    _pod: Any = None
    _has_table: bool = False
    _entries: dict[str, str] = field(factory=dict)
    _length: int = 0

    def take(self, part: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        """Take a part. Raises InputError for victims that are none."""
        if part == POD:
            self._pod = value
        elif part == VICTIMS:
            if not isinstance(value, dict | None):
                raise InputError("victims: must be a table of nodes")
            self._has_table = self._has_table or value is not None
        elif part == VICTIMS_OF:
            self._take_entry(*value)

    def preemption(self) -> Preemption:
        """Return the question."""
        pod = checked_pod(self._pod)
        # An empty answer would end the preemption of a scheduler that names its victims otherwise.
        if not self._has_table:
            raise InputError("victims: neither NodeNameToVictims nor NodeNameToMetaVictims")
        return Preemption(pod, self._entries)

    def _take_entry(self, node: str, victims: object) -> None:
        if not node or len(node) > LONGEST_NAME:
            raise InputError(f"victims: a node has no name of at most {LONGEST_NAME} characters")
        if len(self._entries) >= MOST_NODES:
            raise InputError(f"victims: must be of at most {MOST_NODES} nodes")
        entry = f"{json.dumps(node)}: {json.dumps(_meta_victims(victims))}"
        self._length += len(entry)
        if self._length > MOST_ANSWER:
            raise InputError(f"victims: their UIDs must have at most {MOST_ANSWER} characters")
        self._entries[node] = entry


def _meta_victims(victims: object) -> Mapping[str, Any]:
    """Return the MetaVictims of a node."""
    # A scheduler fails on null in an answer.
    if not isinstance(victims, dict):
        raise InputError("victims: those of a node must be an object")
    pods, violations = victims.get("Pods") or [], victims.get("NumPDBViolations", 0)
    if not isinstance(pods, list) or len(pods) > MOST_OF_NODE:
        raise InputError(f"victims: Pods must be a list of at most {MOST_OF_NODE}")
    if type(violations) is not int or not 0 <= violations <= MOST_VIOLATIONS:
        raise InputError("victims: NumPDBViolations must be a whole number of 64 bits")
    return {"Pods": [{"UID": _uid(pod)} for pod in pods], "NumPDBViolations": violations}


def _uid(pod: object) -> str:
    """Return the UID of a Pod or of a MetaPod."""
    uid = text_at(pod, "metadata.uid") or text_at(pod, "UID")
    if not uid or len(uid) > LONGEST_NAME:
        raise InputError(f"victims: a pod has no UID of at most {LONGEST_NAME} characters")
    return uid
