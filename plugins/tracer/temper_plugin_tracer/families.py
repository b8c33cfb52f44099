"""The metric families of the windows, and their dashboard panels."""

from temper_core import MetricFamily, PanelHint

WINDOWS_AND_LOSS = "Windows, and pairs that found no room"

WINDOWS = MetricFamily(
    "temper_wake_windows_total",
    "Windows in which every wake-up and switch was watched.",
    kind="counter",
    panels=(PanelHint(WINDOWS_AND_LOSS, "per_second", legend="windows"),),
)
WATCHED = MetricFamily(
    "temper_wake_watched_seconds_total",
    "Total length of the windows in which wake-ups are watched; the wait histograms cover these.",
    kind="counter",
    panels=(
        PanelHint("Share of the time in which wake-ups are watched", "ratio", legend="watched"),
    ),
)
LOST = MetricFamily(
    "temper_wake_edges_lost_total",
    "Pairs of waker and wakee that found no room in the windows of wake-ups.",
    kind="counter",
    panels=(PanelHint(WINDOWS_AND_LOSS, "per_second", legend="pairs lost"),),
)
NODE_WAITS = MetricFamily(
    "temper_node_wait_seconds",
    "Time that threads of the node waited for a CPU, in the watched windows.",
    kind="histogram",
    panels=(
        PanelHint("How long threads waited for a CPU", "seconds"),
        PanelHint("How long threads waited for a CPU", "seconds", board="fleet"),
    ),
)
LAYER_WAITS = MetricFamily(
    "temper_layer_wait_seconds",
    "Time that a layer's threads waited for a CPU, in the watched windows.",
    kind="histogram",
    labels=("layer",),
    panels=(
        PanelHint(
            "By layer: 1 % wait longer",
            "seconds",
            query="histogram_quantile(0.99, sum by (layer, le)"
            " (rate(temper_layer_wait_seconds_bucket{@}[$__rate_interval])))",
            legend="{{layer}}",
        ),
    ),
)
POD_WAITS = MetricFamily(
    "temper_pod_wait_seconds",
    "Time that a pod's threads waited for a CPU, in the watched windows.",
    kind="histogram",
    labels=("namespace", "pod"),
    panels=(PanelHint("How long threads waited for a CPU", "seconds", board="pod"),),
)
FAMILIES = (WINDOWS, WATCHED, LOST, NODE_WAITS, LAYER_WAITS, POD_WAITS)
