"""The placement invariants every Temper node is held against."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from temper_core import Command, Endpoint, Exporter, Invariant, Severity, fit_settings, hookimpl
from temper_plugin_linter.fences import open_reserve, protected_fallback
from temper_plugin_linter.layer_mismatch import layer_mismatch
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.smt_collision import smt_collision
from temper_plugin_linter.standing import ages, violations

if TYPE_CHECKING:
    import click

__all__ = ["temper_commands", "temper_endpoints", "temper_exporters", "temper_invariants"]


@hookimpl
def temper_invariants(settings: Mapping[str, Any]) -> list[Invariant]:
    """Contribute the four promises; ``[plugins.linter]`` holds their thresholds."""
    limits = fit_settings(settings, Limits, plugin="linter")
    return [
        Invariant(
            "smt_collision",
            partial(smt_collision, limits=limits),
            why="a busy sibling takes up to half of the core that a fence was to keep whole",
        ),
        Invariant(
            "protected_fallback",
            partial(protected_fallback, limits=limits),
            why="protected work outside its fence waits behind what the fence was to keep away",
            severity=Severity.ERROR,
        ),
        Invariant(
            "open_reserve",
            partial(open_reserve, limits=limits),
            why="best effort on fenced CPUs is noise; without a reserve everybody else starves",
            severity=Severity.ERROR,
        ),
        Invariant(
            "layer_mismatch",
            partial(layer_mismatch, limits=limits),
            why="a thread in another layer gets neither the CPUs nor the slice of its tier",
        ),
    ]


@hookimpl
def temper_exporters() -> list[Exporter]:
    """Contribute how long each promise has been broken."""
    return [Exporter("lint-age", ages)]


@hookimpl
def temper_endpoints() -> list[Endpoint]:
    """Contribute ``GET /violations``."""
    return [
        Endpoint(
            "violations",
            "GET",
            "/violations",
            "The violations that stand, oldest first.",
            violations,
            parameters={"invariant": "Only violations of this invariant."},
        )
    ]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper lint``."""
    return [Command("lint", "Show where the node does not keep its promises.", _load_lint)]


def _load_lint() -> "click.Command":
    from temper_plugin_linter.command import lint  # noqa: PLC0415 - click is for the command line

    return lint
