"""Pods of all nodes, found by words."""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import asdict

from temper_plugin_dashboard.fleet.node_summary import PodRow
from temper_plugin_dashboard.fleet.survey import NodeState, State


def find_pods(nodes: Iterable[NodeState], words: str, node: str, most: int) -> Mapping[str, Any]:
    """Return the *most* busiest pods that have all *words* in name, tier, profile or node.

    With *node* only those of that node. Pods of nodes that are away are the last known ones, and
    say so by ``is_old``. ``total`` counts all that match.
    """
    needles = {*words.lower().split()}
    found = [
        (row, state)
        for state in nodes
        if node in ("", state.node)
        for row in _pods(state)
        if _has(needles, _text(row, state))
    ]
    busiest = heapq.nlargest(most, found, key=lambda each: each[0].cpu_used or 0.0)
    rows = [
        {**asdict(row), "node": state.node, "is_old": state.state == State.AWAY}
        for row, state in busiest
    ]
    return {"pods": rows, "total": len(found), "most": most}


def _pods(state: NodeState) -> Iterator[PodRow]:
    yield from state.summary.pods if state.summary else ()


def _has(needles: Iterable[str], text: str) -> bool:
    return all(needle in text for needle in needles)


def _text(row: PodRow, state: NodeState) -> str:
    return f"{row.namespace}/{row.pod} {row.tier} {row.profile} {state.node}".lower()
