"""The metric families of the two services, as the page of metrics and the dashboards have them."""

from temper_core import MetricFamily, PanelHint

WEBHOOK, PLACEMENT = "the overcommit webhook", "the placement service"


def _panels(
    title: str, unit: str = "none", query: str = "", legend: str = ""
) -> tuple[PanelHint, ...]:
    return (PanelHint(title, unit, "fleet", query, legend),)


def _hourly(name: str) -> str:
    return f"sum(increase({name}{{@}}[1h]))"


ADMISSIONS = MetricFamily(
    "temper_overcommit_admissions_total",
    "Pods that the API server sent for admission, by outcome.",
    "counter",
    ("outcome",),
    _panels("Admissions by outcome", "per_second"),
    WEBHOOK,
)
FREED = MetricFamily(
    "temper_overcommit_freed_millicores_total",
    "Millicores by which the requests of admitted pods were lowered.",
    "counter",
    panels=_panels(
        "CPU requests lowered in an hour by",
        "cpus",
        "sum(increase(temper_overcommit_freed_millicores_total{@}[1h])) / 1000",
        "CPUs",
    ),
    service=WEBHOOK,
)
ADMISSION_SECONDS = MetricFamily(
    "temper_overcommit_admission_seconds",
    "Time that the decision about a pod took, without reading the request.",
    "histogram",
    panels=_panels("Time of an admission", "seconds"),
    service=WEBHOOK,
)
CERTIFICATE_EXPIRY = MetricFamily(
    "temper_overcommit_certificate_expiry_timestamp_seconds",
    "Time at which the served certificate expires.",
    panels=_panels(
        "Certificates are valid for",
        "seconds",
        "min(temper_overcommit_certificate_expiry_timestamp_seconds{@}) - time()",
        "certificate",
    ),
    service=WEBHOOK,
)
AUTHORITY_EXPIRY = MetricFamily(
    "temper_overcommit_authority_expiry_timestamp_seconds",
    "Time at which the newest certificate authority expires.",
    panels=_panels(
        "Certificates are valid for",
        "seconds",
        "min(temper_overcommit_authority_expiry_timestamp_seconds{@}) - time()",
        "authority",
    ),
    service=WEBHOOK,
)
CERTIFICATES = MetricFamily(
    "temper_overcommit_certificates_taken_up_total",
    "Certificates that the replica began to serve, the first one included.",
    "counter",
    panels=_panels(
        "New certificates, and failed checks",
        "per_hour",
        _hourly("temper_overcommit_certificates_taken_up_total"),
        "taken up",
    ),
    service=WEBHOOK,
)
CHECK_FAILURES = MetricFamily(
    "temper_overcommit_certificate_check_failures_total",
    "Failed reads of the Secret and the configuration.",
    "counter",
    panels=_panels(
        "New certificates, and failed checks",
        "per_hour",
        _hourly("temper_overcommit_certificate_check_failures_total"),
        "failed",
    ),
    service=WEBHOOK,
)
OVERCOMMIT = (
    ADMISSIONS,
    FREED,
    ADMISSION_SECONDS,
    CERTIFICATE_EXPIRY,
    AUTHORITY_EXPIRY,
    CERTIFICATES,
    CHECK_FAILURES,
)

REQUESTS = MetricFamily(
    "temper_placement_requests_total",
    "Requests of the scheduler, by outcome.",
    "counter",
    ("outcome",),
    _panels("Requests of the scheduler", "per_second"),
    PLACEMENT,
)
REQUEST_SECONDS = MetricFamily(
    "temper_placement_request_seconds",
    "Time that an answer took.",
    "histogram",
    panels=_panels("Time of an answer", "seconds"),
    service=PLACEMENT,
)
SCORES = MetricFamily(
    "temper_placement_scores_total",
    "Nodes scored, by the rule that determined the score.",
    "counter",
    ("rule",),
    _panels("Nodes scored, by rule", "per_second"),
    PLACEMENT,
)
NODES = MetricFamily(
    "temper_placement_nodes",
    "Known nodes.",
    panels=_panels("Known", legend="nodes"),
    service=PLACEMENT,
)
PODS = MetricFamily(
    "temper_placement_pods",
    "Known pods that are bound to a node.",
    panels=_panels("Known", legend="pods"),
    service=PLACEMENT,
)
UNREADABLE = MetricFamily(
    "temper_placement_unreadable_pods_total",
    "Times a pod could not be read.",
    "counter",
    panels=_panels(
        "Known", query="max(temper_placement_unreadable_pods_total{@})", legend="unreadable"
    ),
    service=PLACEMENT,
)
WATCH_UP = MetricFamily(
    "temper_placement_watch_up",
    "1 while the API server is watched, else 0, by `resource`.",
    labels=("resource",),
    panels=_panels(
        "Watches that are up, and lists",
        query="sum by (resource) (temper_placement_watch_up{@})",
        legend="up: {{resource}}",
    ),
    service=PLACEMENT,
)
WATCH_LISTS = MetricFamily(
    "temper_placement_watch_lists_total",
    "Times everything was listed anew, by `resource`.",
    "counter",
    ("resource",),
    _panels(
        "Watches that are up, and lists",
        query="sum by (resource) (temper_placement_watch_lists_total{@})",
        legend="listed: {{resource}}",
    ),
    PLACEMENT,
)
PLACING = (
    REQUESTS,
    REQUEST_SECONDS,
    SCORES,
    NODES,
    PODS,
    UNREADABLE,
    WATCH_UP,
    WATCH_LISTS,
)
