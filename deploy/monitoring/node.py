"""The dashboard of one node: its layers, waits, pressure, and its agent."""

from deploy.monitoring.board import Board, Choice, Row, cell_path_to, link
from deploy.monitoring.node_agent import cost, observing, plugins, steering
from deploy.monitoring.panels import (
    Colour,
    Panel,
    Query,
    Unit,
    areas,
    bars,
    heat,
    lines,
    number,
    steps,
    timeline,
    with_ceiling,
    words,
)
from deploy.monitoring.plugin_rows import plugin_rows
from deploy.monitoring.tables import Column, table
from deploy.monitoring.wording import (
    FLEET,
    MODES,
    NODE,
    POD,
    YES_NO,
    buckets,
    grown,
    mode_number,
    quantiles,
    rate,
)

CLUSTER = 'cluster=~"$cluster"'
SELECTION = f'{CLUSTER}, instance="$instance"'


def node() -> Board:
    """Return the dashboard of one node."""
    return Board(
        uid=NODE,
        title="Temper / Node",
        about="One node: layers, waits, pressure, promises, changes, and the agent there.",
        selection=SELECTION,
        nodes=SELECTION,
        choices=(
            Choice("cluster", "Cluster", "cluster", "temper_build_info", many=True),
            Choice("instance", "Node", "instance", f"temper_build_info{{{CLUSTER}}}"),
        ),
        rows=(
            Row("At a glance", _glance()),
            Row("Layers", _layers()),
            Row("Tiers and pods", _tiers()),
            Row("Pressure", _pressure()),
            Row("Promises", _promises()),
            Row("Steering", steering()),
            Row("Changes of the engine", _changes()),
            Row("What the agent costs", cost()),
            Row("How it observes", observing()),
            Row("Plugins and profiles", plugins(), closed=True),
            *plugin_rows("node"),
        ),
        links=(link("Fleet", FLEET), link("Pods of this node", POD, "instance")),
    )


def _glance() -> tuple[Panel, ...]:
    alarm = ((1, Colour.BAD),)
    return (
        words(
            "Mode",
            Query("max by (mode) (temper_mode{@}) == 1", "{{mode}}"),
            limits=((1, Colour.BUSY),),
        ),
        words(
            "Reason for safe mode",
            Query("max by (reason) (temper_safe_mode{@}) == 1", "{{reason}}"),
            limits=alarm,
            about="Empty if the node is not in safe mode.",
        ),
        number("Configuration", Query("max(temper_config_generation{@})")),
        words("Version", Query("max by (version) (temper_build_info{@})", "{{version}}")),
        number("Broken promises", Query("sum(temper_lint_violation{@})"), limits=alarm),
        number("Pods", Query("sum(temper_tier_pods{@})")),
        number(
            "Pods last known",
            Query("max(temper_pods_age_seconds{@})"),
            unit=Unit.SECONDS,
            limits=((60, Colour.BAD),),
        ),
        number(
            "Age of the last snapshot",
            Query("max(temper_snapshot_age_seconds{@})"),
            unit=Unit.SECONDS,
            limits=((120, Colour.BAD),),
        ),
        timeline("Mode", Query(mode_number(), "mode"), mappings=MODES, width=24, height=4),
    )  # fmt: skip


def _layers() -> tuple[Panel, ...]:
    return (
        areas(
            "CPUs owned",
            Query("max by (layer) (temper_layer_cpus{@})", "{{layer}}"),
            unit=Unit.CPUS,
        ),
        areas(
            "CPUs used",
            Query(rate("temper_layer_cpu_seconds_total", "layer"), "{{layer}}"),
            unit=Unit.CPUS,
        ),
        lines(
            "Use of a layer's own CPUs",
            Query("max by (layer) (temper_layer_util_ratio{@})", "{{layer}}"),
            unit=Unit.RATIO,
            about="Above 100 % it also ran on CPUs of other layers.",
        ),
        lines("Threads", Query("max by (layer) (temper_layer_tasks{@})", "{{layer}}")),
        lines(
            "Scheduled outside the fence",
            Query("max by (layer) (temper_layer_outside_ratio{@})", "{{layer}}: CPU time"),
            Query("max by (layer) (temper_layer_fallback_ratio{@})", "{{layer}}: events"),
            unit=Unit.RATIO,
        ),
        timeline(
            "Demoted",
            Query("max by (layer) (temper_layer_demoted{@})", "{{layer}}"),
            mappings=YES_NO,
            about="The layer is not fenced because there are not enough whole cores.",
        ),
        table(
            "Layers now",
            Column("Kind", "max by (layer, kind) (temper_layer_info{@})", label="kind"),
            Column("Tier", "max by (layer, tier) (temper_layer_info{@})", label="tier"),
            Column("Owns", "max by (layer) (temper_layer_cpus{@})", Unit.CPUS),
            Column("Uses", "max by (layer) (temper_layer_cpus_used{@})", Unit.CPUS),
            Column("Use", "max by (layer) (temper_layer_util_ratio{@})", Unit.RATIO),
            Column("Threads", "max by (layer) (temper_layer_tasks{@})"),
            Column("Demoted", "max by (layer) (temper_layer_demoted{@})", mappings=tuple(YES_NO)),
            links={},
            names={"layer": "Layer"},
            width=24,
        ),
    )


def _tiers() -> tuple[Panel, ...]:
    cpu = rate("temper_tier_cpu_seconds_total", "tier")
    return (
        with_ceiling(
            areas(
                "CPU used by tier",
                Query(cpu, "{{tier}}"),
                Query("sum(temper_tier_cpu_request_cores{@})", "all requests"),
                unit=Unit.CPUS,
            ),
            "all requests",
        ),
        lines(
            "Waiting for a CPU, per CPU used",
            Query(f"{rate('temper_tier_run_delay_seconds_total', 'tier')} / {cpu}", "{{tier}}"),
        ),
        areas("Pods", Query("sum by (tier) (temper_tier_pods{@})", "{{tier}}")),
        timeline(
            "Contention",
            Query("max by (tier) (temper_contention{@})", "{{tier}}"),
            mappings=YES_NO,
        ),
        bars(
            "CPU used now by tier",
            Query("sort_desc(sum by (tier) (temper_tier_cpus_used{@}))", "{{tier}}"),
            unit=Unit.CPUS,
        ),
        lines("Threads of the node", Query("max(temper_threads{@})", "threads")),
        _busiest_pods(),
    )


def _busiest_pods() -> Panel:
    return table(
        "Pods, the busiest first",
        Column(
            "CPU used",
            "sum by (namespace, pod) (temper_pod_cpus_used{@})",
            Unit.CPUS,
        ),
        Column("Quota", "sum by (namespace, pod) (temper_pod_quota_cores{@})", Unit.CPUS),
        Column("Tier", "max by (namespace, pod, tier) (temper_pod_info{@})", label="tier"),
        Column("Profile", "max by (namespace, pod, profile) (temper_pod_info{@})", label="profile"),
        Column(
            "Throttled",
            "max by (namespace, pod) (temper_pod_throttled_ratio{@})",
            Unit.RATIO,
            limits=((0.01, Colour.WARNING),),
        ),
        Column(
            "Waits, throttling aside",
            "max by (namespace, pod) (temper_pod_unthrottled_pressure_ratio{@})",
            Unit.RATIO,
        ),
        Column("Threads", "sum by (namespace, pod) (temper_pod_threads{@})"),
        Column("Memory", "sum by (namespace, pod) (temper_pod_memory_bytes{@})", Unit.BYTES),
        links={
            "pod": cell_path_to(
                POD,
                "instance",
                namespace='${__data.fields["Namespace"]}',
                pod="${__value.text}",
            )
        },
        names={"namespace": "Namespace", "pod": "Pod"},
        first="CPU used",
        width=24,
        height=10,
    )


def _pressure() -> tuple[Panel, ...]:
    def stalled(resource: str, name: str) -> Panel:
        return lines(
            f"{name}: share of time stalled",
            Query(
                f'max by (kind) (rate(temper_pressure_seconds_total{{@, resource="{resource}"}}'
                "[$__rate_interval]))",
                "{{kind}}",
            ),
            unit=Unit.RATIO,
        )

    return (
        stalled("cpu", "CPU"),
        stalled("memory", "Memory"),
        stalled("io", "I/O"),
        lines(
            "Averages of the kernel, some stalled",
            Query(
                'max by (resource, window) (temper_pressure_ratio{@, kind="some"})',
                "{{resource}} {{window}}",
            ),
            unit=Unit.RATIO,
            width=12,
        ),
        steps(
            "Stalls reported by the kernel",
            Query(grown("temper_pressure_events_total", "resource"), "{{resource}}"),
            width=12,
        ),
    )


def _promises() -> tuple[Panel, ...]:
    return (
        areas(
            "Broken promises",
            Query("max by (invariant) (temper_lint_violation{@}) > 0", "{{invariant}}"),
            about="No line means zero, the normal state. `temper lint` shows the remedies.",
        ),
        areas(
            "By severity",
            Query("sum by (severity) (temper_lint_severity_violations{@})", "{{severity}}"),
        ),
    )


def _changes() -> tuple[Panel, ...]:
    return (
        steps("Changes by way", Query(grown("temper_swaps_total", "way"), "{{way}}")),
        steps("Starts by cause", Query(grown("temper_reloads_total", "cause"), "{{cause}}")),
        steps(
            "Ejections, and changes that failed",
            Query(grown("temper_ejections_total", "kind"), "ejected: {{kind}}"),
            Query(grown("temper_swap_failures_total", "kind"), "not swapped: {{kind}}"),
        ),
        heat("On the stock scheduler per change", buckets("temper_reload_stock_seconds")),
        lines(
            "The same, quantiles",
            *quantiles("temper_reload_stock_seconds", "way"),
            unit=Unit.SECONDS,
        ),
        lines("Configuration", Query("max(temper_config_generation{@})", "generation")),
    )
