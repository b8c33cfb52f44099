"""Families of the agent itself: its state, the configuration, plugins."""

from collections.abc import Iterable, Iterator, Mapping

from temper_core import __version__
from temper_core.metrics.exposition import COUNTER, HISTOGRAM
from temper_core.metrics.families.reading import (
    NEVER,
    UNOBSERVED,
    Family,
    HistogramFamily,
    Per,
    Reading,
    Values,
)
from temper_core.records.histogram import Histogram
from temper_core.records.snapshots import Mode, SafeModeReason

WAYS = ("warm", "cold")
MOST_ENDS = 29
"""Number of the kinds of an engine's end."""
MOST_CAUSES = 6
"""Number of the causes of a reload."""
MOST_EVENT_KINDS = 128
"""Kinds of events with a series of their own, the agent's kinds first."""


def counted(counts: Mapping[str, int], always: Iterable[str] = ()) -> Values:
    """Turn counts by name into values. The names in *always* have a value even if it is 0."""
    names = dict.fromkeys([*always, *sorted(counts)])
    return [((name,), float(counts.get(name, 0))) for name in names]


def _modes(reading: Reading) -> Values:
    return [((mode.value,), float(reading.status.mode is mode)) for mode in Mode]


def _safe_mode_reasons(reading: Reading) -> Values:
    is_safe = reading.status.mode is Mode.SAFE_MODE
    return [
        ((reason.value,), float(is_safe and reading.status.reason == reason))
        for reason in SafeModeReason
    ]


def _stock_seconds(reading: Reading) -> Iterator[tuple[tuple[str, ...], Histogram]]:
    for way, histogram in reading.counters.stock_seconds.items():
        yield (way,), histogram


def _plugin_failures(reading: Reading) -> Values:
    names = (plugin.name for plugin in reading.plugins)
    return counted(reading.counters.plugin_failures, always=names)


STATE = (
    Family(
        "temper_build_info",
        "1, with the agent's version.",
        lambda _: [((__version__,), 1.0)],
        labels=("version",),
        absent=NEVER,
    ),
    Family(
        "temper_mode",
        "1 for the mode the agent is in, 0 for the others.",
        _modes,
        labels=("mode",),
        absent=NEVER,
        most=len(Mode),
    ),
    Family(
        "temper_safe_mode",
        "1 for the reason the node is in safe mode, if it is.",
        _safe_mode_reasons,
        labels=("reason",),
        absent=NEVER,
        most=len(SafeModeReason),
    ),
    Family(
        "temper_snapshot_age_seconds",
        "Seconds since the last observation ended.",
        lambda r: [] if r.age_s is None else [((), r.age_s)],
        unit="seconds",
        absent=UNOBSERVED,
    ),
    Family(
        "temper_pods_age_seconds",
        "Seconds since the pod source last confirmed its list of pods.",
        lambda r: [((), r.pods_age_s)],
        unit="seconds",
        absent=NEVER,
    ),
    Family(
        "temper_config_generation",
        "Number of the configuration in force, 0 without one.",
        lambda r: [((), float(r.status.generation))],
        absent=NEVER,
    ),
    Family(
        "temper_reloads_total",
        "Reloads of the engine, by cause.",
        lambda r: counted(r.counters.reloads),
        labels=("cause",),
        kind=COUNTER,
        absent="before the first one of a cause",
        most=MOST_CAUSES,
    ),
    Family(
        "temper_ejections_total",
        "Ejections of the engine by the kernel, by kind of exit.",
        lambda r: counted(r.counters.ejections),
        labels=("kind",),
        kind=COUNTER,
        absent="before the first one of a kind",
        most=MOST_ENDS,
    ),
    HistogramFamily(
        "temper_reload_stock_seconds",
        "Seconds on the stock scheduler during a planned change of the engine, by way.",
        _stock_seconds,
        labels=("way",),
        kind=HISTOGRAM,
        unit="seconds",
        absent="where the agent runs no engine",
        most=len(WAYS) * (len(Histogram().counts) + 2),
    ),
    Family(
        "temper_swaps_total",
        "Planned changes of the engine: warm (loaded beside the old one) or cold (after it).",
        lambda r: counted(r.counters.swaps, always=WAYS),
        labels=("way",),
        kind=COUNTER,
        absent=NEVER,
        most=len(WAYS),
    ),
    Family(
        "temper_swap_failures_total",
        "Successor engines that could not take over, by kind of their end.",
        lambda r: counted(r.counters.swap_failures),
        labels=("kind",),
        kind=COUNTER,
        absent="before the first one of a kind",
        most=MOST_ENDS,
    ),
    Family(
        "temper_events_total",
        "Events by kind, including events that came too fast to be kept.",
        lambda r: list(counted(r.counters.events))[:MOST_EVENT_KINDS],
        labels=("kind",),
        kind=COUNTER,
        absent="before the first one of a kind",
        most=MOST_EVENT_KINDS,
    ),
)

PLUGINS = (
    Family(
        "temper_profile_load_failures",
        "Profiles that could not be loaded, by profile id.",
        lambda r: counted(r.counters.profile_failures),
        labels=("profile",),
        absent="for a profile without failures",
        per=Per.PROFILE,
    ),
    Family(
        "temper_plugin_failures_total",
        "Calls into a plugin that failed.",
        _plugin_failures,
        labels=("plugin",),
        kind=COUNTER,
        absent="without plugins",
        per=Per.PLUGIN,
    ),
    Family(
        "temper_plugin_info",
        "1, with a plugin's version and state (active, degraded, set_aside, not_allowed).",
        lambda r: [((p.name, p.version, p.state), 1.0) for p in r.plugins],
        labels=("plugin", "version", "state"),
        absent="without plugins",
        per=Per.PLUGIN,
    ),
    Family(
        "temper_plugin_active",
        "1 while a plugin is in use, 0 once it was set aside or if it is not allowed.",
        lambda r: [((p.name,), float(p.is_in_use)) for p in r.plugins],
        labels=("plugin",),
        absent="without plugins",
        per=Per.PLUGIN,
    ),
    Family(
        "temper_plugin_calls_total",
        "Calls into a plugin.",
        lambda r: [((p.name,), float(p.calls)) for p in r.plugins],
        labels=("plugin",),
        kind=COUNTER,
        absent="without plugins",
        per=Per.PLUGIN,
    ),
    Family(
        "temper_plugin_seconds_total",
        "Wall-clock time of calls into a plugin.",
        lambda r: [((p.name,), p.time_spent_s) for p in r.plugins],
        labels=("plugin",),
        kind=COUNTER,
        unit="seconds",
        absent="without plugins",
        per=Per.PLUGIN,
    ),
)
