"""The metric families of the plugin, as the page of metrics and the dashboards have them."""

from temper_core import MetricFamily, PanelHint

REQUESTS = "Requests to the API server"
OTHERS = "Lists, watches that ended, unreadable objects"


def _requests(legend: str, *, fleet: str = OTHERS) -> tuple[PanelHint, ...]:
    return (
        PanelHint(REQUESTS, "per_second", legend=legend),
        PanelHint(fleet, "per_second", "fleet", legend=legend),
    )


WATCH_UP = MetricFamily(
    "temper_kubernetes_watch_up",
    "1 while the API server is watched, else 0, by `resource`: pods, node.",
    labels=("resource",),
    panels=(
        PanelHint("API server watched", "yes_no"),
        PanelHint(
            "API server watched",
            board="fleet",
            query="sum by (resource) (temper_kubernetes_watch_up{@})",
            legend="{{resource}} (nodes)",
        ),
    ),
)
RESTARTS = MetricFamily(
    "temper_kubernetes_watch_restarts_total",
    "Times a watch ended, by `resource`.",
    "counter",
    ("resource",),
    _requests("watch ended: {{resource}}"),
)
LISTS = MetricFamily(
    "temper_kubernetes_lists_total",
    "Times everything was listed anew, by `resource`.",
    "counter",
    ("resource",),
    _requests("listed: {{resource}}"),
)
WRITTEN = MetricFamily(
    "temper_kubernetes_writes_total",
    "Writes to the API server, by `write`: annotations, events, and each with `_failed`.",
    "counter",
    ("write",),
    _requests("written: {{write}}", fleet="Writes to the API server"),
)
NOT_READ = MetricFamily(
    "temper_kubernetes_unreadable_objects_total",
    "Objects that could not be read, by `resource`.",
    "counter",
    ("resource",),
    _requests("unreadable: {{resource}}"),
)
FAMILIES = (WRITTEN, LISTS, RESTARTS, NOT_READ, WATCH_UP)
