"""The linter: invariants that every snapshot of a node is checked against."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from temper_core import (
    Command,
    Endpoint,
    Exporter,
    Invariant,
    MetricFamily,
    SettingsTable,
    fit_settings,
    hookimpl,
)
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.placement_tracker import PlacementTracker
from temper_plugin_linter.rules import RULES
from temper_plugin_linter.standing import AGE, ages, violations

if TYPE_CHECKING:
    import click

__all__ = [
    "temper_commands",
    "temper_endpoints",
    "temper_exporters",
    "temper_invariants",
    "temper_metrics",
    "temper_settings",
]


@hookimpl
def temper_invariants(settings: Mapping[str, Any]) -> list[Invariant]:
    """Contribute the invariants. ``[plugins.linter]`` has their thresholds."""
    tracker = PlacementTracker(_limits(settings))
    return [invariant for rule in RULES if (invariant := rule.invariant(tracker))]


@hookimpl
def temper_exporters() -> list[Exporter]:
    """Contribute the ages of violations."""
    return [Exporter("lint-age", ages)]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare the age of violations."""
    return [AGE]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare the thresholds."""
    return [SettingsTable(Limits)]


@hookimpl
def temper_endpoints(settings: Mapping[str, Any]) -> list[Endpoint]:
    """Contribute ``GET /violations``."""
    return [
        Endpoint(
            "violations",
            "GET",
            "/violations",
            "The current violations, oldest first.",
            partial(violations, limits=_limits(settings)),
            parameters={
                "invariant": "Only violations of this invariant.",
                "id": "Only the violation with this id.",
            },
        )
    ]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper lint``."""
    return [Command("lint", "Show the node's violations of invariants.", _load_lint)]


def _limits(settings: Mapping[str, Any]) -> Limits:
    return fit_settings(settings, Limits, plugin="linter")


def _load_lint() -> "click.Command":
    from temper_plugin_linter.command import lint  # noqa: PLC0415 - click is for the command line

    return lint
