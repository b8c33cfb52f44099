"""The metric families of the operator."""

from temper_core import MetricFamily, PanelHint

SERVICE = "the power operator"


def _family(
    name: str, meaning: str, title: str, labels: tuple[str, ...] = (), kind: str = "gauge"
) -> MetricFamily:
    unit = {"counter": "per_second", "histogram": "seconds"}.get(kind, "none")
    panels = (PanelHint(title, unit, "fleet", "", ""),)
    return MetricFamily(f"temper_power_{name}", meaning, kind, labels, panels, SERVICE)


PROFILES = _family(
    "profiles", "WorkloadProfiles, by `band` of confidence.", "Power profiles", ("band",)
)
CLASSIFICATIONS = _family(
    "classifications_total",
    "Classifications of workloads, by `result`: classified, hints_only, manual, failed.",
    "Classifications",
    ("result",),
    "counter",
)
QUERY_SECONDS = _family(
    "query_seconds",
    "Time that a query of Prometheus took, by `signal`.",
    "Time of a query of the power operator",
    ("signal",),
    "histogram",
)
QUERY_FAILURES = _family(
    "query_failures_total",
    "Queries of Prometheus that failed, by `signal`.",
    "Failed queries of the power operator",
    ("signal",),
    "counter",
)
DIALECT = _family(
    "energy_dialect",
    "1 for the `dialect` of Kepler that the last cycle found.",
    "Dialect of Kepler",
    ("dialect",),
)
BOUND_UNKNOWN = _family(
    "energy_bound_unknown",
    "WorkloadProfiles whose energy says nothing of what they are bound by.",
    "Profiles whose energy says nothing",
)
LEADING = _family(
    "operator_leading", "1 while this replica is the one that writes, else 0.", "Operators leading"
)
WATCH_UP = _family(
    "operator_watch_up",
    "1 while the API server is watched, else 0, by `resource`.",
    "Watches of the power operator",
    ("resource",),
)
OPERATOR = (
    PROFILES,
    CLASSIFICATIONS,
    QUERY_SECONDS,
    QUERY_FAILURES,
    DIALECT,
    BOUND_UNKNOWN,
    LEADING,
    WATCH_UP,
)
