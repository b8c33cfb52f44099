"""How a report is shown: the options that all of its commands have, and the output."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click
from attrs import fields, frozen

from temper_core.console import (
    EXIT_FINDINGS,
    FiniteRange,
    Row,
    output_formats,
    print_json,
    printable,
)
from temper_core.observed import number, rows, table
from temper_plugin_rightsizer.commands.formats import (
    as_csv,
    as_markdown,
    as_table,
    needs_change,
    texts,
)
from temper_plugin_rightsizer.commands.page import as_html
from temper_plugin_rightsizer.commands.patches import as_patches
from temper_plugin_rightsizer.commands.profile import as_profile
from temper_plugin_rightsizer.commands.pull_request import as_pull_request
from temper_plugin_rightsizer.commands.totals import realized_of, savings_of
from temper_plugin_rightsizer.commands.values import as_values
from temper_plugin_rightsizer.prices.settings import UNKNOWN

WRITERS: Mapping[str, Callable[[Row], str]] = {
    "csv": as_csv,
    "markdown": as_markdown,
    "html": as_html,
    "patch": as_patches,
    "values": as_values,
    "pr": as_pull_request,
    "profile": as_profile,
}
MOST_PRICE = 1e6
BY_HAND = "--core-price and --gib-price"
NOT_YET = " yet; the agent learns it from its next windows on"
FORMATS = ("table", "json", *WRITERS)


def showing_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give *command* the options of prices and of the output, as its argument ``showing``."""

    @wraps(command)
    def asking(**given: Any) -> int:  # noqa: ANN401 - click's own
        names = [each.name for each in fields(Showing)]
        return command(showing=Showing(**{name: given.pop(name) for name in names}), **given)

    decorated: Callable[..., int] = asking
    options = (
        click.option(
            "--core-price",
            type=FiniteRange(0.0, MOST_PRICE),
            help="The price of a core for an hour, in any currency, in place of all other prices.",
        ),
        click.option(
            "--gib-price",
            type=FiniteRange(0.0, MOST_PRICE),
            help="The price of a GiB of memory for an hour.",
        ),
        click.option(
            "--explain/--no-explain",
            default=True,
            show_default=True,
            help="Show the reasons in a table.",
        ),
        click.option(
            "--fail-on-change", is_flag=True, help="Exit with 1 if a container should be changed."
        ),
        output_formats(*FORMATS, help="The format of the report."),
    )
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


@frozen
class Showing:
    """How to show a report: the values of ``showing_options``."""

    output: str
    explain: bool
    fail_on_change: bool
    core_price: float | None
    gib_price: float | None

    @property
    def has_prices(self) -> bool:
        """Whether the command line has prices, which replace all others."""
        return self.core_price is not None or self.gib_price is not None

    def priced(self, document: Row) -> Row:
        """Return *document* with prices, and with what they make of it.

        Prices of the command line come first, then those of the report's machines, then those of
        the settings.
        """
        if self.has_prices:
            document = self._by_hand(document)
        elif "prices" not in document and (of_settings := table(document, "price_settings")):
            known = {name: of_settings.get(name) for name in ("core_hour", "gib_hour")}
            document = {**document, "prices": {**known, "source": UNKNOWN}}
        savings, realized = savings_of(document), realized_of(document)
        priced = {**document}
        if savings is not None:
            priced["identified_savings_per_month"] = savings.per_month
            priced["identified_savings"] = {
                "requests_per_month": savings.requests.per_month,
                "headroom_per_month": savings.headroom_per_month,
            }
        if realized is not None:
            priced["realized"] = {
                "window_s": realized.window_s,
                "reclaimed_core_hours": round(realized.reclaimed, 3),
                "freed_core_hours": round(realized.freed, 3),
            }
        return priced

    def _by_hand(self, document: Row) -> Row:
        """Return *document* with the prices of the command line in place of all others."""
        prices = {"core_hour": self.core_price, "gib_hour": self.gib_price}
        core_hour, gib_hour = self.core_price or 0.0, self.gib_price or 0.0
        machines = [
            {
                **row,
                "core_hour": core_hour,
                "gib_hour": gib_hour,
                "hour": (number(row, "cores") or 0) * core_hour
                + (number(row, "gib") or 0) * gib_hour,
                "source": BY_HAND,
            }
            for row in rows(document, "machines")
        ]
        return {**document, "prices": {**prices, "source": BY_HAND}, "machines": machines}


def show_report(document: Row, showing: Showing) -> int:
    """Print a report. Return the exit code: 1 for a change that is due, if asked to.

    Notes on what is not known go to standard error.
    """
    document, output = showing.priced(document), showing.output
    for note in texts(document, "notes"):
        click.echo(f"note: {printable(note)}", err=True)
    if output == "json":
        print_json(document)
    else:
        click.echo(_shown(document, output, showing.explain))
    return EXIT_FINDINGS if showing.fail_on_change and needs_change(document) else 0


def _shown(document: Row, output: str, explain: bool) -> str:
    if output in WRITERS:
        return WRITERS[output](document)
    if not rows(document, "containers"):
        later = "" if document.get("is_incomplete") else NOT_YET
        return f"no demand is known{later}"
    return as_table(document, explains=explain)
