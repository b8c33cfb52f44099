"""Advice from the objects of a cluster, with causes: ``temper power recommend``."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from attrs import evolve, frozen

from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.operating.slicing import WHOLE
from temper_plugin_power.resources.fields import number_at, text_at, value_at
from temper_plugin_power.resources.reading import CUT, node_name
from temper_plugin_power.views.nodes import NodeRow, node_row
from temper_plugin_power.views.tier_suggestions import (
    ADVICE,
    CAUSE,
    UntieredPod,
    workloads_without_tier,
)
from temper_plugin_power.workloads.owners import Workload

RESCHEDULE, SLICE, TIER = "reschedule", "slice", "tier"
MOST_MOVES = 1024
"""How many workloads of a node are kept. A node has no more than some hundred pods."""
LONGEST_TEXT = 1024
"""Characters that are kept of a text of a NodeTwin."""


@frozen
class Advice:
    """One piece of advice."""

    kind: str
    """reschedule, slice or tier."""
    subject: str
    """A workload, ``namespace/kind/name``, or a node."""
    node: str
    """Empty for advice that is about no node."""
    advice: str
    cause: str


@frozen
class AdvisedNode:
    """A node, and the advice of its NodeTwin."""

    row: NodeRow
    advice: tuple[Advice, ...]


def advised_node(document: Mapping[str, Any], now: datetime) -> AdvisedNode:
    """Return a node and the advice of its NodeTwin. *now* is in UTC."""
    found = (*islice(_moves(document), MOST_MOVES), *_slices(document))
    return AdvisedNode(node_row(document, now), tuple(map(_cut, found)))


def advice_of(
    nodes: Iterable[AdvisedNode],
    pods: Iterable[UntieredPod],
    profiles: Mapping[Workload, PowerProfile],
) -> list[Advice]:
    """Return the advice of *nodes*, by name, then the workloads that had better have a tier.

    Advice of a stale twin is left out, since its pods may have gone.
    """
    ordered = sorted(nodes, key=lambda node: node.row.node)
    found = [each for node in ordered if not node.row.is_stale for each in node.advice]
    for workload in workloads_without_tier(pods, profiles):
        subject = f"{workload.namespace}/{workload.kind}/{workload.name}"
        found.append(Advice(TIER, subject, "", ADVICE, CAUSE))
    return found


def _cut(advice: Advice) -> Advice:
    return evolve(
        advice,
        subject=advice.subject[:LONGEST_TEXT],
        node=advice.node[:CUT],
        advice=advice.advice[:LONGEST_TEXT],
        cause=advice.cause[:LONGEST_TEXT],
    )


def _moves(twin: Mapping[str, Any]) -> Iterator[Advice]:
    advised = value_at(twin, "status.rescheduleRecommendations")
    for each in advised if isinstance(advised, list) else ():
        keys = (text_at(each, f"workloadRef.{key}") for key in ("namespace", "kind", "name"))
        subject, cause = "/".join(keys), text_at(each, "reason")
        yield Advice(RESCHEDULE, subject, node_name(twin), "start its pods elsewhere", cause)


def _slices(twin: Mapping[str, Any]) -> Iterator[Advice]:
    advised = value_at(twin, "status.gpuSlicingRecommendation")
    mode = text_at(advised, "mode")
    if mode not in ("", WHOLE):
        kind = text_at(advised, "sliceType")
        per_gpu, total = (int(number_at(advised, key)) for key in ("slicesPerGPU", "totalSlices"))
        what = f"{mode} {kind}".strip()
        advice = f"{what}, {per_gpu} for each GPU, {total} in all"
        confidence = number_at(advised, "confidence")
        cause = f"{text_at(advised, 'reason')} (confidence {confidence:.1f})"
        yield Advice(SLICE, node_name(twin), node_name(twin), advice, cause)
