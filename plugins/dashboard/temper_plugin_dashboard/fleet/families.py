"""The metric families of the fleet server, as the page of metrics and the dashboards have them."""

from temper_core import MetricFamily, PanelHint

SERVICE = "the page of a cluster"


def _panels(
    title: str, unit: str = "none", query: str = "", legend: str = ""
) -> tuple[PanelHint, ...]:
    return (PanelHint(title, unit, "fleet", query, legend),)


BUILD = MetricFamily(
    "temper_dashboard_build_info",
    "1, with the server's version.",
    labels=("version",),
    panels=_panels("Versions of the page", legend="{{version}}"),
    service=SERVICE,
)
NODES = MetricFamily(
    "temper_dashboard_nodes",
    "Nodes by what the last round found: answers, slow, other version, away.",
    labels=("state",),
    panels=_panels(
        "Nodes, as the page knows them",
        query="sum by (state) (temper_dashboard_nodes{@})",
        legend="{{state}}",
    ),
    service=SERVICE,
)
ANSWER_AGE = MetricFamily(
    "temper_dashboard_answer_age_seconds",
    "Time since the last answer of a node's agent. It grows while no page is open.",
    labels=("node",),
    panels=_panels(
        "Oldest answer of an agent",
        "seconds",
        "max(temper_dashboard_answer_age_seconds{@})",
        "oldest",
    ),
    service=SERVICE,
)
ROUNDS = MetricFamily(
    "temper_dashboard_rounds_total",
    "Rounds over all agents. There are none while no page is open.",
    "counter",
    panels=_panels("Rounds over all agents", "per_second", legend="rounds"),
    service=SERVICE,
)
FAILED_ROUNDS = MetricFamily(
    "temper_dashboard_failed_rounds_total",
    "Rounds in which the API server did not list the agents.",
    "counter",
    panels=_panels("Rounds over all agents", "per_second", legend="failed"),
    service=SERVICE,
)
FORWARDING_FAILURES = MetricFamily(
    "temper_dashboard_forwarding_failures_total",
    "Requests of nodes' pages without the agent's answer, by cause: refused, no_answer.",
    "counter",
    ("cause",),
    _panels("Requests of nodes' pages that failed", "per_second"),
    SERVICE,
)
ACTIONS = MetricFamily(
    "temper_dashboard_actions_total",
    "Agents that the page asked to act, by outcome: done, refused, no_answer.",
    "counter",
    ("outcome",),
    _panels("Agents asked to act", "per_hour"),
    SERVICE,
)
STREAMS = MetricFamily(
    "temper_dashboard_streams",
    "Streams of events to open pages.",
    panels=_panels("Open streams of the page", legend="streams"),
    service=SERVICE,
)
REQUESTS = MetricFamily(
    "temper_dashboard_requests_total",
    "Requests by kind, and by class of the status: 2xx to 5xx, and none without an answer.",
    "counter",
    ("kind", "status"),
    _panels(
        "Requests to the page, by status",
        "per_second",
        "sum by (status) (rate(temper_dashboard_requests_total{@}[$__rate_interval]))",
        "{{status}}",
    ),
    SERVICE,
)
REQUEST_SECONDS = MetricFamily(
    "temper_dashboard_request_seconds",
    "Time until an answer began, by kind of request.",
    "histogram",
    ("kind",),
    _panels("Time until an answer of the page begins", "seconds"),
    SERVICE,
)
CERTIFICATE_EXPIRY = MetricFamily(
    "temper_dashboard_certificate_expiry_timestamp_seconds",
    "Time at which the served certificate expires, with TLS.",
    panels=_panels(
        "Certificates are valid for",
        "seconds",
        "min(temper_dashboard_certificate_expiry_timestamp_seconds{@}) - time()",
        "page of a cluster",
    ),
    service=SERVICE,
)
FAMILIES = (
    BUILD,
    NODES,
    ANSWER_AGE,
    ROUNDS,
    FAILED_ROUNDS,
    FORWARDING_FAILURES,
    ACTIONS,
    STREAMS,
    REQUESTS,
    REQUEST_SECONDS,
    CERTIFICATE_EXPIRY,
)
