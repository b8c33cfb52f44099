"""Scores many nodes for one pod, with what depends on the pod alone computed once."""

from collections.abc import Sequence

from attrs import frozen

from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.places import head_of
from temper_plugin_power.placing.scoring import (
    FULL_SCALE,
    NEUTRAL,
    NodeKind,
    PodTerms,
    Score,
)
from temper_plugin_power.placing.subjects import EARLY_S, Choices, PodView


@frozen
class Moment:
    """A time, and the times between which the twins are from that count then."""

    now: float
    oldest: float
    newest: float

    @classmethod
    def of(cls, now: float, choices: Choices) -> "Moment":
        """Return the moment *now*, in seconds since the epoch."""
        return cls(now, now - choices.twin_staleness_s, now + EARLY_S)


def terms_of(pod: PodView, cluster: Cluster, choices: Choices, moment: Moment) -> PodTerms:
    """Return the terms of a pod's scores."""
    return PodTerms(pod, cluster.pressure(moment.oldest, moment.newest), choices)


def points_of(names: Sequence[str], cluster: Cluster, terms: PodTerms, moment: Moment) -> list[int]:
    """Return the points of each node, as ``score_of`` has them. They are neutral without a twin."""
    places, oldest, newest = cluster.places, moment.oldest, moment.newest
    cpu_points, gpu_points = terms.cpu_points, terms.gpu_points
    of_kinds: dict[NodeKind, tuple[float, float, float]] = {}
    points = []
    # This loop takes most of the time of a request, so that it has no calls.
    for name in names:
        place = places.get(name)
        if place is None or place.figures is None or not oldest <= place.told_at <= newest:
            points.append(NEUTRAL)
            continue
        figures = place.figures
        of_kind = of_kinds.get(figures.kind)
        if of_kind is None:
            of_kind = of_kinds[figures.kind] = terms.of_kind(figures.kind)
        caps = cpu_points * figures.cpu_cut + gpu_points * figures.gpu_cut
        total = figures.base + of_kind[0] + of_kind[1] + of_kind[2] - caps
        points.append(int(total) if 0 < total < FULL_SCALE else 0 if total <= 0 else FULL_SCALE)
    return points


def written_scores(names: Sequence[str], points: Sequence[int], cluster: Cluster, most: int) -> str:
    """Return the scores as a HostPriorityList, on a scale from 0 to *most*."""
    places = cluster.places
    ends = [f"{Score(each).on_scale(most)}}}" for each in range(FULL_SCALE + 1)]
    entries = [
        (place.head if (place := places.get(name)) is not None else head_of(name)) + ends[each]
        for name, each in zip(names, points, strict=True)
    ]
    return f"[{', '.join(entries)}]"
