"""Answers of Prometheus as measures of pods."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from attrs import evolve

from temper_plugin_power.measuring.questions import Place, Question
from temper_plugin_power.workloads.pods import MOST, MeasuredPod, PodMeasures
from temper_prometheus.answers import Labels, Series

Values = Mapping[str, float]
"""By ``namespace/name``."""


def values_of(series: Iterable[Series], question: Question) -> Values:
    """Return the measure of each pod. Series that name no pod, or have no number, are left out.

    A sum beyond any use is left out, too: the owner of any scraped target may add series of any
    pod. Raises ValueError for a damaged sample.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for each in series:
        key = _key(each.labels, question.places)
        if key:
            found[key] += [value for _, value in each.values()]
    combined = {key: question.combine(values) for key, values in found.items() if values}
    return {key: value for key, value in combined.items() if value <= MOST}


def measures_of(values: Mapping[str, Values]) -> Mapping[str, PodMeasures]:
    """Return the measures of all pods from the *values* of each measure."""
    known: dict[str, dict[str, float]] = defaultdict(dict)
    for measure, of_pods in values.items():
        for key, value in of_pods.items():
            known[key][measure] = value
    return {key: PodMeasures(**measures) for key, measures in known.items()}


def with_measures(
    pods: Iterable[MeasuredPod], measures: Mapping[str, PodMeasures]
) -> tuple[MeasuredPod, ...]:
    """Return the *pods* with their measures. A pod without any has none."""
    nothing = PodMeasures()
    return tuple(evolve(pod, measures=measures.get(pod.pod.key, nothing)) for pod in pods)


def _key(labels: Labels, places: Iterable[Place]) -> str:
    for namespace, pod in places:
        if labels.get(namespace) and labels.get(pod):
            return f"{labels[namespace]}/{labels[pod]}"
    return ""
