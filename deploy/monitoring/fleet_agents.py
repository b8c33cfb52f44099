"""Panels of the fleet's dashboard about the agents: engine changes, cost, versions."""

from deploy.monitoring.panels import Panel, Query, Unit, areas, bars, lines, steps
from deploy.monitoring.tables import Column, table
from deploy.monitoring.wording import grown, quantiles, rate


def changes() -> tuple[Panel, ...]:
    """Show changes of the engine, and failed ones."""
    return (
        steps("Changes by way", Query(grown("temper_swaps_total", "way"), "{{way}}")),
        steps(
            "Starts of the engine by cause",
            Query(grown("temper_reloads_total", "cause"), "{{cause}}"),
        ),
        steps(
            "Ejections, and changes that failed",
            Query(grown("temper_ejections_total", "kind"), "ejected: {{kind}}"),
            Query(grown("temper_swap_failures_total", "kind"), "not swapped: {{kind}}"),
            about="See the kinds in docs/lifecycle.md.",
        ),
        lines(
            "On the stock scheduler per change",
            *quantiles("temper_reload_stock_seconds", "way"),
            unit=Unit.SECONDS,
        ),
        lines(
            "Most changed nodes",
            Query(
                "topk(10, sum by (cluster, instance) (increase(temper_reloads_total{@}[1h]))) > 0",
                "{{instance}}",
            ),
            unit=Unit.PER_HOUR,
            about="An agent makes at most 20 in an hour.",
        ),
        lines(
            "Pods last known",
            Query(
                "topk(10, max by (cluster, instance) (temper_pods_age_seconds{@}))", "{{instance}}"
            ),
            unit=Unit.SECONDS,
            about="Up to 30 s is normal.",
        ),
    )


def cost() -> tuple[Panel, ...]:
    """Show what the agents themselves use."""
    own = (
        "sum by (cluster, instance) (rate(temper_overhead_cpu_seconds_total{@}[$__rate_interval]))"
    )
    return (
        lines(
            "CPU of an agent",
            Query(f"max({own})", "greatest"),
            Query(f"quantile(0.95, {own})", "95 of 100 are below"),
            Query(f"avg({own})", "mean"),
            unit=Unit.RATIO,
            about="As a share of one core.",
        ),
        areas(
            "CPU of all agents by part",
            Query(rate("temper_overhead_cpu_seconds_total", "part"), "{{part}}"),
            unit=Unit.CPUS,
        ),
        lines(
            "Memory",
            Query("max(temper_overhead_memory_bytes{@})", "agent, greatest"),
            Query("avg(temper_overhead_memory_bytes{@})", "agent, mean"),
            Query("max(temper_engine_memory_bytes{@})", "engine, greatest"),
            unit=Unit.BYTES,
        ),
        bars(
            "Agents with the highest CPU use",
            Query(
                "topk(10, sum by (cluster, instance)"
                " (rate(temper_overhead_cpu_seconds_total{@}[10m])))",
                "{{instance}}",
            ),
            unit=Unit.RATIO,
        ),
        lines(
            "Nodes observed less often than configured",
            Query("sum(temper_observe_stretched{@})", "stretched"),
            about="Observation costs too much there; see [observe] budget_cpu_ratio.",
        ),
        lines(
            "Series",
            Query("sum(temper_series{@})", "exported"),
            Query(grown("temper_series_dropped_total"), "left out"),
        ),
    )


def agents() -> tuple[Panel, ...]:
    """Show versions, plugins, profiles, and the cluster."""
    return (
        areas(
            "Agents by version", Query("count by (version) (temper_build_info{@})", "{{version}}")
        ),
        areas(
            "Observed by",
            Query("sum by (tier) (temper_observe_tier{@}) > 0", "{{tier}}"),
            about="bpf is the cheapest; the others are for kernels that do not allow it.",
        ),
        areas(
            "Pods without their selected profile",
            Query("sum by (reason) (temper_profile_not_applied{@})", "{{reason}}"),
        ),
        table(
            "Plugins",
            Column(
                "Nodes",
                "count by (plugin, version, state) (temper_plugin_info{@})",
            ),
            Column(
                "Called",
                "count by (plugin, version, state) (temper_plugin_info{@}"
                " * on (cluster, instance, plugin) group_left () temper_plugin_active{@} == 1)",
            ),
            links={},
            names={"plugin": "Plugin", "version": "Version", "state": "State"},
        ),
        lines(
            "Profiles that cannot be loaded, or whose evidence expired",
            Query("sum by (profile) (temper_profile_load_failures{@})", "not loaded: {{profile}}"),
            Query(
                "sum by (profile) (temper_profile_expired_pods{@})", "expired: {{profile}} (pods)"
            ),
        ),
        steps(
            "Calls into plugins that failed",
            Query(grown("temper_plugin_failures_total", "plugin"), "{{plugin}}"),
        ),
    )
