"""The metric families of the windows."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve

from temper_core import Histogram, Metric, MetricSample, Snapshot, WaitHistogram, WakeWindow
from temper_plugin_tracer.wait_totals import WaitTotals, WindowSums

MOST_PODS = 128
"""Pods with a histogram, 13 series each: those that waited longest."""


def wait_metrics(totals: WaitTotals, snapshot: Snapshot | None) -> Iterator[Metric]:
    """Yield every family; without a sample until wake-ups were watched."""
    sums, by_subject = totals.sums, totals.by_subject()
    yield from _counters(sums)
    yield _histogram(
        "temper_node_wait_seconds",
        "How long threads of the node waited for a CPU, in the windows in which that was watched.",
        [({}, sums.waits)] if sums.waits is not None else (),
    )
    yield _histogram(
        "temper_layer_wait_seconds",
        "How long a layer's threads waited for a CPU, in the windows in which that was watched.",
        _of_layers(snapshot, by_subject),
    )
    yield _histogram(
        "temper_pod_wait_seconds",
        "How long a pod's threads waited for a CPU, in the windows in which that was watched.",
        _of_pods(snapshot, by_subject),
    )


def every_family() -> list[Metric]:
    """Return every family with one sample, for pages and dashboards that list families."""
    totals = WaitTotals()
    waits = tuple(WaitHistogram(subject, (0,)) for subject in ("node", "layer any", "any/any"))
    totals.add(WakeWindow(0.0, 1.0, 0.0, 0.0, waits=waits))
    by_subject = totals.by_subject()
    labels = {
        "temper_layer_wait_seconds": {"layer": "any"},
        "temper_pod_wait_seconds": {"namespace": "any", "pod": "any"},
    }
    return [
        evolve(metric, samples=(MetricSample(by_subject["any/any"], labels[metric.name]),))
        if metric.name in labels
        else metric
        for metric in wait_metrics(totals, None)
    ]


def _counters(sums: WindowSums) -> Iterator[Metric]:
    for name, meaning, value in (
        (
            "temper_wake_windows_total",
            "Windows in which every wake-up and switch was watched.",
            sums.windows,
        ),
        (
            "temper_wake_watched_seconds_total",
            "Seconds that those windows lasted; what the wait histograms are a sample of.",
            sums.watched_s,
        ),
        (
            "temper_wake_edges_lost_total",
            "Pairs of waker and wakee that found no room in those windows.",
            sums.lost,
        ),
    ):
        samples = (MetricSample(value),) if sums.windows else ()
        yield Metric(name, meaning, samples, kind="counter")


def _histogram(
    name: str, meaning: str, found: Iterable[tuple[Mapping[str, str], Histogram]]
) -> Metric:
    samples = tuple(MetricSample(histogram, labels) for labels, histogram in found)
    return Metric(name, meaning, samples, kind="histogram")


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
