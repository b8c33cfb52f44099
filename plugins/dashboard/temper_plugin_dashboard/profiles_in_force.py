"""The profiles of the node's pods, with the measurements that support them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict

from temper_core import LayerPlan, WorkloadProfile


def profiles_in_force(plan: LayerPlan | None) -> Sequence[Mapping[str, Any]]:
    """Return each profile that *plan* applies, its source, its evidence and its pods.

    Each figure has the effect that it alone shows.
    """
    pods, applied = defaultdict[tuple[str, str], list[str]](list), {}
    for assignment in plan.assignments if plan is not None else ():
        if (loaded := assignment.profile) is not None:
            key = loaded.profile.id, loaded.source
            applied[key] = loaded
            pods[key].append(assignment.pod.key)
    return [
        {
            "id": loaded.profile.id,
            "source": loaded.source,
            "expired": loaded.expired,
            "evidence": _evidence(loaded.profile),
            "pods": sorted(pods[key]),
        }
        for key, loaded in sorted(applied.items())
    ]


def _evidence(profile: WorkloadProfile) -> Mapping[str, Any]:
    evidence = profile.evidence
    figures = [{**asdict(figure), "effect": figure.effect} for figure in evidence.figures]
    return {**asdict(evidence), "figures": figures}
