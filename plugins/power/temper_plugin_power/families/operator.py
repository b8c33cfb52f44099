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
NODE_STATE = _family(
    "node_state",
    "1 for the `state` of a node: ActivePerformance, DrainingPerformance, ActiveEco, Unknown.",
    "States of nodes",
    ("node", "state"),
)
NODE_PROFILE = _family(
    "node_profile",
    "1 for the `profile` whose caps a node has.",
    "Profiles of nodes",
    ("node", "profile"),
)
TRANSITIONS = _family(
    "state_transitions_total",
    "Changes of the states of nodes, by `result`: applied, or deferred by pods.",
    "Changes of the states of nodes",
    ("node", "from_state", "to_state", "result"),
    "counter",
)
BLOCKING = _family(
    "blocking_pods",
    "Pods that keep a node from becoming an eco node, by `cause`.",
    "Pods that keep nodes from becoming eco nodes",
    ("node", "cause"),
)
HP_NODES = _family("hp_nodes", "Nodes that are to be performance nodes.", "Performance nodes")
DEMAND = _family(
    "performance_demand",
    "Weighted demand for performance nodes, in pods of medium intensity.",
    "Demand for performance nodes",
)
DENSITY = _family(
    "node_compute_density",
    "Compute density of a node, by which performance nodes are chosen, by `component`: all.",
    "Compute density of nodes",
    ("node", "component"),
)
HEADROOM = _family(
    "node_headroom_score", "Headroom of a node by the model, 0 to 100.", "Headroom", ("node",)
)
COOLING = _family(
    "node_cooling_stress_score",
    "Cooling stress of a node by the model, 0 to 100.",
    "Cooling stress",
    ("node",),
)
SUPPLY = _family(
    "node_psu_stress_score",
    "Supply stress of a node by the model, 0 to 100.",
    "Supply stress",
    ("node",),
)
EVICTIONS = _family(
    "evictions_total",
    "Pods evicted from draining nodes, by `reason`.",
    "Evictions from draining nodes",
    ("node", "namespace", "reason"),
    "counter",
)
SKIPS = _family(
    "eviction_skips_total",
    "Evictions that were left out, by `reason`: disruption_budget, dry_run, no_owner.",
    "Evictions that were left out",
    ("node", "reason"),
    "counter",
)
NODES = (
    *(NODE_STATE, NODE_PROFILE, TRANSITIONS, BLOCKING, HP_NODES, DEMAND, DENSITY),
    *(HEADROOM, COOLING, SUPPLY, EVICTIONS, SKIPS),
)
CLASSIFYING = (
    PROFILES,
    CLASSIFICATIONS,
    QUERY_SECONDS,
    QUERY_FAILURES,
    DIALECT,
    BOUND_UNKNOWN,
    LEADING,
    WATCH_UP,
)
OPERATOR = (*CLASSIFYING, *NODES)
