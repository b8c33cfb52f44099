"""Panels of a node's dashboard about its agent: steering, cost, observation, plugins."""

from deploy.monitoring.panels import (
    Colour,
    Panel,
    Query,
    Unit,
    areas,
    lines,
    named_values,
    timeline,
)
from deploy.monitoring.tables import Column, table
from deploy.monitoring.wording import YES_NO, grown, rate


def steering() -> tuple[Panel, ...]:
    """Show how threads are steered to their layers."""
    return (
        timeline(
            "Steered by hints",
            Query("max(temper_steering{@})", "steered"),
            mappings=named_values((0, "no: matchers", Colour.ODD), (1, "yes", Colour.GOOD)),
        ),
        lines(
            "Hints and kicks",
            Query(rate("temper_steering_hints_written_total"), "written"),
            Query(
                rate("temper_steering_hints_corrected_total"),
                "corrected",
            ),
            Query(rate("temper_steering_kicks_total"), "kicks"),
            unit=Unit.PER_SECOND,
        ),
        lines(
            "Threads astray and boosted, and failures",
            Query("max(temper_steering_threads_astray{@})", "astray"),
            Query("max(temper_steering_threads_niced{@})", "boosted"),
            Query(grown("temper_steering_failures_total"), "failures"),
        ),
    )


def cost() -> tuple[Panel, ...]:
    """Show the agent's own use of CPU and memory."""
    return (
        areas(
            "CPU by part",
            Query(rate("temper_overhead_cpu_seconds_total", "part"), "{{part}}"),
            unit=Unit.RATIO,
            about="As a share of one core.",
        ),
        lines(
            "In BPF programs, and in the last window",
            Query(rate("temper_overhead_bpf_cpu_seconds_total"), "BPF"),
            Query("max(temper_overhead_bpf_cpu_ratio{@})", "BPF, last window"),
            Query("sum(temper_overhead_cpu_ratio{@})", "all, last window"),
            unit=Unit.RATIO,
        ),
        lines(
            "Memory",
            Query("max(temper_overhead_memory_bytes{@})", "agent"),
            Query("max(temper_engine_memory_bytes{@})", "engine"),
            unit=Unit.BYTES,
        ),
        lines(
            "CPU time of a snapshot",
            Query("max(temper_overhead_tick_seconds{@})", "snapshot"),
            unit=Unit.SECONDS,
        ),
        lines("Open files", Query("max(temper_overhead_descriptors{@})", "files")),
        lines(
            "Series",
            Query("max(temper_series{@})", "exported"),
            Query(grown("temper_series_dropped_total"), "left out"),
        ),
    )


def observing() -> tuple[Panel, ...]:
    """Show how closely the agent observes."""
    return (
        lines(
            "Seconds between two snapshots",
            Query("max(temper_observe_period_seconds{@})", "actual"),
            Query("max(temper_observe_asked_period_seconds{@})", "configured"),
            unit=Unit.SECONDS,
        ),
        timeline(
            "Observed less often than configured",
            Query("max(temper_observe_stretched{@})", "stretched"),
            mappings=YES_NO,
        ),
        timeline(
            "Tier of observation",
            Query("max by (tier) (temper_observe_tier{@}) == 1", "{{tier}}"),
            mappings=named_values((1, "in use", Colour.BUSY)),
        ),
        lines(
            "Share of observed time",
            Query(rate("temper_observe_seconds_total"), "observed"),
            unit=Unit.RATIO,
        ),
        lines("Threads summed up", Query("max(temper_observe_unlisted_threads{@})", "threads")),
        lines("Unreadable", Query("max(temper_observe_defects{@})", "things")),
    )


def plugins() -> tuple[Panel, ...]:
    """Show plugins, their instruments, and profiles."""
    return (
        table(
            "Plugins",
            Column("Version", "max by (plugin, version) (temper_plugin_info{@})", label="version"),
            Column("State", "max by (plugin, state) (temper_plugin_info{@})", label="state"),
            Column("Called", "max by (plugin) (temper_plugin_active{@})"),
            Column("Calls", "sum by (plugin) (temper_plugin_calls_total{@})"),
            Column("Failures", "sum by (plugin) (temper_plugin_failures_total{@})"),
            Column("Time", "sum by (plugin) (temper_plugin_seconds_total{@})", Unit.SECONDS),
            links={},
            names={"plugin": "Plugin"},
            width=12,
        ),
        areas(
            "Time spent in plugins",
            Query(rate("temper_plugin_seconds_total", "plugin"), "{{plugin}}"),
            unit=Unit.RATIO,
            width=12,
        ),
        lines(
            "Profiles: not loaded, not applied, expired",
            Query("sum by (profile) (temper_profile_load_failures{@})", "not loaded: {{profile}}"),
            Query(
                "sum by (reason) (temper_profile_not_applied{@})", "pods not applied to: {{reason}}"
            ),
            Query(
                "sum by (profile) (temper_profile_expired_pods{@})", "pods, expired: {{profile}}"
            ),
        ),
        *_instruments(),
    )


def _instruments() -> tuple[Panel, ...]:
    return (
        areas(
            "Events",
            Query(rate("temper_events_total", "kind"), "{{kind}}"),
            unit=Unit.PER_SECOND,
        ),
        lines(
            "Memory of helper processes",
            Query(
                "max by (instrument) (temper_instrument_helper_memory_bytes{@})", "{{instrument}}"
            ),
            unit=Unit.BYTES,
        ),
        lines(
            "CPU time of helper processes",
            Query(
                rate("temper_instrument_helper_cpu_seconds_total", "instrument"), "{{instrument}}"
            ),
            Query("max by (instrument) (temper_instrument_helpers{@})", "run: {{instrument}}"),
            unit=Unit.RATIO,
        ),
        lines(
            "State directories",
            Query("max by (instrument) (temper_instrument_state_bytes{@})", "{{instrument}}"),
            Query(
                "max by (instrument) (temper_instrument_state_limit_bytes{@})",
                "bound: {{instrument}}",
            ),
            unit=Unit.BYTES,
        ),
    )
