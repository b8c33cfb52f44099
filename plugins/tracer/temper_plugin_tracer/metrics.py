"""What the windows so far add up to, as metrics."""

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
"""Pods with a histogram, 13 series each: those that waited longest."""


def wait_metrics(totals: WaitTotals, snapshot: Snapshot | None) -> Iterator[Metric]:
    """Yield every family. Without a sample until wake-ups were watched."""
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
        if (found := waits.get(f"layer {layer.name}")) is not None:
            yield {"layer": layer.name}, found


def _of_pods(
    snapshot: Snapshot | None, waits: Mapping[str, Histogram]
) -> list[tuple[Mapping[str, str], Histogram]]:
    """Return the pods that are there, those that waited longest first."""
    pods = {(pod.namespace, pod.pod) for pod in snapshot.pods} if snapshot is not None else set()
    found = [
        (key, waits[subject]) for key in pods if (subject := "/".join(filter(None, key))) in waits
    ]
    found.sort(key=lambda pair: (-pair[1].total, pair[0]))
    return [
        ({"namespace": namespace, "pod": pod}, histogram)
        for (namespace, pod), histogram in found[:MOST_PODS]
    ]
