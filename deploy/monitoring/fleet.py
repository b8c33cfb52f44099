"""The dashboard of all nodes: modes, violations, CPU by tier, changes and cost."""

from deploy.monitoring.board import Board, Choice, Row, cell_path_to, link
from deploy.monitoring.fleet_agents import agents, changes, cost
from deploy.monitoring.panels import (
    Colour,
    Panel,
    Query,
    Unit,
    areas,
    lines,
    number,
    timeline,
)
from deploy.monitoring.plugin_rows import plugin_rows
from deploy.monitoring.tables import Column, table
from deploy.monitoring.wording import (
    FLEET,
    MODES,
    NODE,
    POD,
    mode_number,
    rate,
)

SELECTION = 'cluster=~"$cluster"'
TIER = ', tier=~"$tier"'
NODE_NAMES = {"cluster": "Cluster", "instance": "Node"}
TO_NODE = {"instance": cell_path_to(NODE, instance="${__value.text}")}


def fleet() -> Board:
    """Return the dashboard of all nodes."""
    return Board(
        uid=FLEET,
        title="Temper / Fleet",
        about="Every node with an agent: modes, broken promises, CPU by tier, and cost.",
        selection=SELECTION,
        nodes=SELECTION,
        choices=(
            Choice("cluster", "Cluster", "cluster", "temper_build_info", many=True),
            Choice("tier", "Tier", "tier", f"temper_tier_pods{{{SELECTION}}}", many=True),
        ),
        rows=(
            Row("At a glance", _glance()),
            Row("Modes", _modes()),
            Row("Promises", _promises()),
            Row("CPU by tier", _tiers()),
            Row("Changes of the engine", changes()),
            Row("What the agents cost", cost()),
            Row("Agents, plugins, profiles", agents(), closed=True),
            *plugin_rows("fleet"),
        ),
        links=(link("Node", NODE), link("Pod", POD)),
    )


def _glance() -> tuple[Panel, ...]:
    alarm = ((1, Colour.BAD),)
    return (
        number("Nodes", Query("count(temper_build_info{@})")),
        number(
            "Enforcing",
            Query('sum(temper_mode{@, mode=~"enforcing|reloading"})'),
            limits=((1, Colour.GOOD),),
        ),
        number("In safe mode", Query('sum(temper_mode{@, mode="safe_mode"})'), limits=alarm),
        number(
            "Only observing",
            Query('sum(temper_mode{@, mode="observe_only"})'),
            limits=((1, Colour.ODD),),
            about="By setting, or because the kernel has no sched_ext.",
        ),
        number(
            "Agents gone",
            Query(
                "count(max by (cluster, instance) (max_over_time(temper_build_info{@}[6h]))"
                " unless on (cluster, instance) temper_build_info{@}) or vector(0)"
            ),
            limits=alarm,
            about="They answered within the last 6 h and do not now. Removed nodes are included.",
        ),
        number("Broken promises", Query("sum(temper_lint_violation{@})"), limits=alarm),
        number("Pods", Query("sum(temper_tier_pods{@})")),
        number(
            "Versions",
            Query("count(count by (version) (temper_build_info{@}))"),
            limits=((2, Colour.ODD),),
        ),
    )


def _modes() -> tuple[Panel, ...]:
    return (
        timeline(
            "Mode of each node",
            Query(mode_number(), "{{instance}}"),
            mappings=MODES,
            width=16,
            height=9,
            about="Grey: the agent did not answer.",
        ),
        areas("Nodes by mode", Query("sum by (mode) (temper_mode{@})", "{{mode}}"), height=9),
        table(
            "Nodes that do not enforce",
            Column(
                "Mode",
                'max by (cluster, instance, mode) (temper_mode{@, mode!="enforcing"}) == 1',
                label="mode",
            ),
            Column(
                "Reason",
                "max by (cluster, instance, reason) (temper_safe_mode{@}) == 1",
                label="reason",
            ),
            links=TO_NODE,
            names=NODE_NAMES,
            width=12,
        ),
        areas(
            "Safe mode by reason",
            Query("sum by (reason) (temper_safe_mode{@})", "{{reason}}"),
            width=12,
        ),
        _every_node(),
    )


def _every_node() -> Panel:
    alarm = ((1, Colour.BAD),)
    return table(
        "Every node",
        Column("Mode", mode_number(), mappings=tuple(MODES)),
        Column(
            "Version",
            "max by (cluster, instance, version) (temper_build_info{@})",
            label="version",
        ),
        Column("Configuration", "max by (cluster, instance) (temper_config_generation{@})"),
        Column("Pods", "sum by (cluster, instance) (temper_tier_pods{@})"),
        Column(
            "CPU used by pods", "sum by (cluster, instance) (temper_tier_cpus_used{@})", Unit.CPUS
        ),
        Column(
            "Broken promises", "sum by (cluster, instance) (temper_lint_violation{@})", limits=alarm
        ),
        Column(
            "Pods known for",
            "max by (cluster, instance) (temper_pods_age_seconds{@})",
            Unit.SECONDS,
            limits=((60, Colour.BAD),),
        ),
        Column(
            "Agent's CPU",
            "sum by (cluster, instance) (rate(temper_overhead_cpu_seconds_total{@}[10m]))",
            Unit.RATIO,
            limits=((0.05, Colour.WARNING),),
        ),
        Column(
            "Memory, engine included",
            "sum by (cluster, instance)"
            " (temper_overhead_memory_bytes{@} + temper_engine_memory_bytes{@})",
            Unit.BYTES,
        ),
        links=TO_NODE,
        names=NODE_NAMES,
        first="Broken promises",
        width=24,
        height=10,
    )


def _promises() -> tuple[Panel, ...]:
    return (
        areas(
            "Broken promises by invariant",
            Query("sum by (invariant) (temper_lint_violation{@}) > 0", "{{invariant}}"),
            about="No line means zero, the normal state.",
        ),
        areas(
            "By severity",
            Query("sum by (severity) (temper_lint_severity_violations{@})", "{{severity}}"),
        ),
        table(
            "Longest broken",
            Column(
                "For",
                "max by (cluster, instance, invariant) (temper_lint_violation_age_seconds{@}) > 0",
                Unit.SECONDS,
            ),
            Column(
                "Violations",
                "max by (cluster, instance, invariant) (temper_lint_violation{@}) > 0",
            ),
            links=TO_NODE,
            names={**NODE_NAMES, "invariant": "Invariant"},
            first="For",
        ),
    )


def _tiers() -> tuple[Panel, ...]:
    return (
        areas(
            "CPU used",
            Query(rate("temper_tier_cpu_seconds_total", "tier", more=TIER), "{{tier}}"),
            unit=Unit.CPUS,
        ),
        areas(
            "CPU requested",
            Query(f"sum by (tier) (temper_tier_cpu_request_cores{{@{TIER}}})", "{{tier}}"),
            unit=Unit.CPUS,
        ),
        areas(
            "Pods", Query(f"sum by (tier) (temper_tier_pods{{@{TIER}}})", "{{tier}}")
        ),
        lines(
            "Waiting for a CPU, per CPU used",
            Query(
                f"{rate('temper_tier_run_delay_seconds_total', 'tier', more=TIER)}"
                f" / {rate('temper_tier_cpu_seconds_total', 'tier', more=TIER)}",
                "{{tier}}",
            ),
            about="Seconds that threads waited for each second that they ran. It should be small"
            " for high tiers.",
        ),
        areas(
            "Nodes with contention",
            Query(f"sum by (tier) (temper_contention{{@{TIER}}})", "{{tier}}"),
        ),
        lines(
            "Busiest nodes: share of time with a waiting thread",
            Query(
                "topk(10, max by (cluster, instance)"
                ' (rate(temper_pressure_seconds_total{@, resource="cpu", kind="some"}'
                "[$__rate_interval])))",
                "{{instance}}",
            ),
            unit=Unit.RATIO,
        ),
    )  # fmt: skip
