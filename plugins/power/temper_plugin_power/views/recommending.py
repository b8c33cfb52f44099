"""Advice from the objects of a cluster, with causes: ``temper power recommend``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from temper_core import Pod
from temper_plugin_power.operating.slicing import WHOLE
from temper_plugin_power.resources.fields import number_at, text_at, value_at
from temper_plugin_power.resources.reading import node_name
from temper_plugin_power.views.nodes import NodeRow, node_rows
from temper_plugin_power.views.profiles import profile_rows
from temper_plugin_power.views.tier_suggestions import ADVICE, CAUSE, workloads_without_tier

RESCHEDULE, SLICE, TIER = "reschedule", "slice", "tier"


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


def advice_of(
    objects: Sequence[Mapping[str, Any]], pods: Iterable[Pod], now: datetime
) -> list[Advice]:
    """Return the advice of the NodeTwins, by node, then the workloads that had better have a tier.

    *now* is in UTC. Advice of a stale twin is left out, since its pods may have gone.
    """
    fresh = {row.node for row in node_rows(objects, now) if not row.is_stale}
    twins = sorted(
        (each for each in objects if each.get("kind") == "NodeTwin" and node_name(each) in fresh),
        key=node_name,
    )
    found = [each for twin in twins for each in (*_moves(twin), *_slices(twin))]
    profiles = {row.workload: row.profile for row in profile_rows(objects)}
    for workload in workloads_without_tier(pods, profiles):
        subject = f"{workload.namespace}/{workload.kind}/{workload.name}"
        found.append(Advice(TIER, subject, "", ADVICE, CAUSE))
    return found


def stale_nodes(objects: Sequence[Mapping[str, Any]], now: datetime) -> list[NodeRow]:
    """Return the nodes whose advice is left out. *now* is in UTC."""
    return [row for row in node_rows(objects, now) if row.is_stale]


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
