"""The sums of all windows, as metrics."""

from collections.abc import Iterable, Iterator, Mapping

from temper_core import Histogram, Metric, MetricFamily, MetricSample, Snapshot
from temper_plugin_tracer.families import (
    LAYER_WAITS,
    LOST,
    NODE_WAITS,
    POD_WAITS,
    WATCHED,
    WINDOWS,
)
from temper_plugin_tracer.wait_totals import WaitTotals

MOST_PODS = 128
"""Pods with a histogram of 13 series, the ones that waited longest."""


def wait_metrics(totals: WaitTotals, snapshot: Snapshot | None) -> Iterator[Metric]:
    """Yield every family. The families have no samples before the first window."""
    sums, by_subject = totals.sums, totals.by_subject()
    for family, value in (
        (WINDOWS, sums.windows),
        (WATCHED, sums.watched_s),
        (LOST, sums.lost),
    ):
        yield family.metric((MetricSample(value),) if sums.windows else ())
    yield _histogram(NODE_WAITS, [({}, sums.waits)] if sums.waits is not None else ())
    yield _histogram(LAYER_WAITS, _of_layers(snapshot, by_subject))
    yield _histogram(POD_WAITS, _of_pods(snapshot, by_subject))


def _histogram(
    family: MetricFamily, waits: Iterable[tuple[Mapping[str, str], Histogram]]
) -> Metric:
    return family.metric(tuple(MetricSample(histogram, labels) for labels, histogram in waits))


def _of_layers(
    snapshot: Snapshot | None, waits: Mapping[str, Histogram]
) -> Iterator[tuple[Mapping[str, str], Histogram]]:
    for layer in snapshot.layers if snapshot is not None else ():
        if (histogram := waits.get(f"layer {layer.name}")) is not None:
            yield {"layer": layer.name}, histogram


def _of_pods(
    snapshot: Snapshot | None, waits: Mapping[str, Histogram]
) -> list[tuple[Mapping[str, str], Histogram]]:
    """Return the pods of the snapshot, the longest waits first."""
    pods = {(pod.namespace, pod.pod) for pod in snapshot.pods} if snapshot is not None else set()
    histograms = [
        (key, waits[subject]) for key in pods if (subject := "/".join(filter(None, key))) in waits
    ]
    histograms.sort(key=lambda pair: (-pair[1].total, pair[0]))
    return [
        ({"namespace": namespace, "pod": pod}, histogram)
        for (namespace, pod), histogram in histograms[:MOST_PODS]
    ]
