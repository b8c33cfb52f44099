"""The metric families of the plugin, as the page of metrics and the dashboards have them."""

from temper_core import MetricFamily, PanelHint

REQUESTS = "Requests to the API server"

WATCH_UP = MetricFamily(
    "temper_kubernetes_watch_up",
    "1 while the API server is watched, by `resource`: pods, node.",
    labels=("resource",),
    panel=PanelHint("API server watched", "yes_no", legend="{{resource}}"),
)
RESTARTS = MetricFamily(
    "temper_kubernetes_watch_restarts_total",
    "Times a watch ended, for whatever reason, by `resource`.",
    "counter",
    labels=("resource",),
    panel=PanelHint(REQUESTS, "per_second", legend="watch ended: {{resource}}"),
)
LISTS = MetricFamily(
    "temper_kubernetes_lists_total",
    "Times everything was listed anew, by `resource`.",
    "counter",
    labels=("resource",),
    panel=PanelHint(REQUESTS, "per_second", legend="listed: {{resource}}"),
)
WRITTEN = MetricFamily(
    "temper_kubernetes_writes_total",
    "Writes to the API server, and those that failed, by `write`.",
    "counter",
    labels=("write",),
    panel=PanelHint(REQUESTS, "per_second", legend="written: {{write}}"),
)
NOT_READ = MetricFamily(
    "temper_kubernetes_unreadable_objects_total",
    "Objects that could not be read, by `resource`.",
    "counter",
    labels=("resource",),
    panel=PanelHint(REQUESTS, "per_second", legend="unreadable: {{resource}}"),
)
FAMILIES = (WRITTEN, LISTS, RESTARTS, NOT_READ, WATCH_UP)
