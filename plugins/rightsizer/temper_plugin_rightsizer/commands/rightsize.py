"""``temper rightsize``: show the advice of the node's agent, or of a Prometheus."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from attrs import asdict

from temper_core import MachineError, ask_agent, did_you_mean
from temper_core.console import (
    Row,
    printable,
    read_settings,
    settings_option,
    watch_options,
)
from temper_core.observed import pod_key, rows
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.commands.backtest import command as backtest
from temper_plugin_rightsizer.commands.choices import advice_options, chosen
from temper_plugin_rightsizer.commands.filling import command as backfill
from temper_plugin_rightsizer.commands.fleet import (
    FleetQuestion,
    fleet_options,
    fleet_report,
    of_workload,
)
from temper_plugin_rightsizer.commands.showing import Showing, show_report, showing_options
from temper_plugin_rightsizer.options import HOURS_OF_DAY, MOST_DAYS
from temper_plugin_rightsizer.prices.reading import prices_in
from temper_plugin_rightsizer.prices.settings import Prices


class PodOrCommand(click.Group):
    """A group whose own work is that of *usual*: a first word that is no sub-command is a pod."""

    def __init__(self, usual: click.Command, **options: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(**options)
        self.usual = usual
        self.add_command(usual)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the usual command before arguments that name none."""
        known = (*self.commands, *self.get_help_option_names(ctx))
        return super().parse_args(ctx, args if args[:1] and args[0] in known else self._usual(args))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the usual command, and the list of the others."""
        self.usual.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def _usual(self, args: list[str]) -> list[str]:
        return [str(self.usual.name), *args]


@click.command("show", hidden=True)
@click.argument("pod", required=False)
@click.option(
    "--hours",
    type=click.IntRange(1, MOST_DAYS * HOURS_OF_DAY),
    help="The hours of history that the advice follows from. "
    "[default: the agent's setting, or 6 of a fleet]",
)
@advice_options
@fleet_options
@settings_option
@showing_options
@watch_options
def show(
    *,
    pod: str | None,
    hours: int | None,
    fleet: FleetQuestion,
    settings_path: Path | None,
    showing: Showing,
    **choices: float | None,
) -> int:
    """Recommend requests and limits of the containers on this node, or of POD.

    The advice follows from the demand of single threads: a thread that keeps a core busy needs a
    core of its own, and four threads that use as much together do not. With --prometheus the
    containers are those of a fleet, and POD is the name of a workload.
    """
    if fleet.url is None:
        document = _of_pod(_asked(settings_path, hours, choices), pod)
    else:
        report = fleet_report(fleet, hours, AdviceOptions(**chosen(choices)))
        document = {**of_workload(report, pod), "price_settings": _prices(settings_path)}
    return show_report(document, showing)


command = PodOrCommand(
    show,
    name="rightsize",
    help=show.help,
    subcommand_metavar="[POD] | COMMAND",
    no_args_is_help=False,
    commands=[backtest, backfill],
)


def _prices(settings_path: Path | None) -> Row:
    """Return the prices of a settings file, the usual ones without a file."""
    return asdict(prices_in(settings_path) if settings_path else Prices())


def _asked(
    settings_path: Path | None, hours: int | None, choices: Mapping[str, float | None]
) -> Row:
    query = {name: f"{value:g}" for name, value in chosen({"hours": hours, **choices}).items()}
    document = ask_agent("/rightsize", query, settings=read_settings(settings_path))
    if not isinstance(document, Mapping) or "containers" not in document:
        raise MachineError("the agent's answer to /rightsize has no containers")
    return document


def _of_pod(document: Row, pod: str | None) -> Row:
    """Return the report of one pod (``namespace/name`` or a name) only."""
    if pod is None:
        return document
    containers = rows(document, "containers")
    chosen = [row for row in containers if pod in (pod_key(row), row.get("pod"))]
    if not chosen:
        keys = sorted({printable(pod_key(row)) for row in containers})
        known = ", ".join(keys[:10]) or "none yet"
        meant = did_you_mean(pod, (*keys, *(key.rpartition("/")[2] for key in keys)))
        raise MachineError(f"no demand of {pod} is known; known are: {known}{meant}")
    return {**document, "containers": chosen}
