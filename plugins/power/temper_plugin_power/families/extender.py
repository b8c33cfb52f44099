"""The metric families of the scheduler extender."""

from temper_core import MetricFamily, PanelHint

SERVICE = "the power extender"
REQUESTS = "Requests of the scheduler to the power extender"
SECONDS = "Time of an answer of the power extender"


def _panels(
    title: str, unit: str = "none", query: str = "", legend: str = ""
) -> tuple[PanelHint, ...]:
    return (PanelHint(title, unit, "fleet", query, legend),)


def _rate(name: str, label: str) -> str:
    return f"sum by ({label}) (rate({name}{{@}}[$__rate_interval]))"


FILTER_REQUESTS = MetricFamily(
    "temper_power_filter_requests_total",
    "Pods that the scheduler asked nodes for, by class.",
    "counter",
    ("workload_class",),
    _panels(
        REQUESTS,
        "per_second",
        _rate("temper_power_filter_requests_total", "workload_class"),
        "filter: {{workload_class}}",
    ),
    SERVICE,
)
PRIORITIZE_REQUESTS = MetricFamily(
    "temper_power_prioritize_requests_total",
    "Pods that the scheduler asked scores for, by class.",
    "counter",
    ("workload_class",),
    _panels(
        REQUESTS,
        "per_second",
        _rate("temper_power_prioritize_requests_total", "workload_class"),
        "prioritize: {{workload_class}}",
    ),
    SERVICE,
)
FILTER_SECONDS = MetricFamily(
    "temper_power_filter_seconds",
    "Time that an answer to /filter took.",
    "histogram",
    panels=_panels(SECONDS, "seconds", legend="filter"),
    service=SERVICE,
)
PRIORITIZE_SECONDS = MetricFamily(
    "temper_power_prioritize_seconds",
    "Time that an answer to /prioritize took.",
    "histogram",
    panels=_panels(SECONDS, "seconds", legend="prioritize"),
    service=SERVICE,
)
CLASS_SOURCE = MetricFamily(
    "temper_power_class_source_total",
    "Requests of the scheduler, by where the class of the pod was from.",
    "counter",
    ("source",),
    _panels("Where the classes of pods are from", "per_second"),
    SERVICE,
)
REJECTIONS = MetricFamily(
    "temper_power_rejections_total",
    "Candidate nodes that did not take a pod, by cause.",
    "counter",
    ("cause",),
    _panels("Nodes that do not take a performance pod", "per_second"),
    SERVICE,
)
NODE_SCORE = MetricFamily(
    "temper_power_node_score",
    "Score of a node for a pod that asks for nothing, of 0 to 100, by the class of the pod.",
    labels=("node", "workload_class"),
    panels=_panels(
        "Scores of nodes by power",
        query="avg by (workload_class) (temper_power_node_score{@})",
        legend="{{workload_class}}",
    ),
    service=SERVICE,
)
STALE_TWINS = MetricFamily(
    "temper_power_stale_twins",
    "Nodes with a NodeTwin that is too old to count.",
    panels=_panels("Stale NodeTwins", legend="nodes"),
    service=SERVICE,
)
CERTIFICATE_EXPIRY = MetricFamily(
    "temper_power_extender_certificate_expiry_timestamp_seconds",
    "Time at which the served certificate expires, with TLS.",
    panels=_panels(
        "Certificates are valid for",
        "seconds",
        "min(temper_power_extender_certificate_expiry_timestamp_seconds{@}) - time()",
        "power extender",
    ),
    service=SERVICE,
)
EXTENDER = (
    FILTER_REQUESTS,
    PRIORITIZE_REQUESTS,
    FILTER_SECONDS,
    PRIORITIZE_SECONDS,
    CLASS_SOURCE,
    REJECTIONS,
    NODE_SCORE,
    STALE_TWINS,
    CERTIFICATE_EXPIRY,
)
