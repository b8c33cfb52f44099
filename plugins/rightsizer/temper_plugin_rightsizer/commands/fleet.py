"""The options of ``temper rightsize`` for a fleet, and the report that they ask for."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import frozen

from temper_core import InputError, TemperError
from temper_core.console import Progress, Row, shown
from temper_core.observed import rows, text
from temper_plugin_rightsizer.advice.options import USUAL, AdviceOptions
from temper_prometheus.durations import HOUR_S, MINUTE_S
from temper_prometheus.options import DurationRange, access_options

if TYPE_CHECKING:
    from temper_plugin_rightsizer.fleet.reading import Fleet

Result = TypeVar("Result")
USUAL_HOURS = 6
LEAST_STEP_S, MOST_STEP_S = 10, HOUR_S
MOST_STARTUP_S = HOUR_S
MOST_KNOWN = 10
SMALLER = "--namespace, --hours or a longer --step make the question smaller"


@frozen
class FleetQuestion:
    """The question, and its Prometheus. Without a ``url`` the node's agent is asked."""

    url: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    tenant: str | None = None
    namespaces: tuple[str, ...] = ()
    selectors: tuple[str, ...] = ()
    step_s: int | None = None
    startup_s: int | None = None


OPTIONS = {
    **access_options(
        "Ask this Prometheus, Thanos or Mimir about a fleet, in place of the node's agent."
    ),
    "namespaces": click.option(
        "--namespace",
        "namespaces",
        metavar="NAME",
        multiple=True,
        help="Only this namespace of the fleet. May be repeated.",
    ),
    "selectors": click.option(
        "--selector",
        "selectors",
        metavar="LABEL=VALUE",
        multiple=True,
        help="Only series with this label, such as cluster=east. May be repeated.",
    ),
    "step_s": click.option(
        "--step",
        "step_s",
        type=DurationRange(LEAST_STEP_S, MOST_STEP_S),
        metavar="DURATION",
        help="The distance of two measurements of the fleet, at least that of two scrapes. "
        "[default: 1m]",
    ),
    "startup_s": click.option(
        "--startup",
        "startup_s",
        type=DurationRange(0, MOST_STARTUP_S),
        metavar="DURATION",
        help="The time after a container's start that sets no request of a fleet. [default: 5m]",
    ),
}
"""The options by the fields of FleetQuestion."""


def fleet_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """Give *command* the options of a fleet, as its argument ``fleet``."""

    @wraps(command)
    def asking(**given: Any) -> Result:  # noqa: ANN401 - click's own
        question = FleetQuestion(**{name: given.pop(name) for name in OPTIONS})
        if question.url is None and question != FleetQuestion():
            raise InputError("an option of a fleet, such as --namespace, needs --prometheus")
        return command(fleet=question, **given)

    decorated: Callable[..., Result] = asking
    for option in reversed(OPTIONS.values()):
        decorated = option(decorated)
    return decorated


def fleet_report(question: FleetQuestion, hours: int | None, options: AdviceOptions = USUAL) -> Row:
    """Return the report that *question* asks for, by the last *hours*.

    Raises InputError or MachineError.
    """
    from temper_plugin_rightsizer.fleet.report import report  # noqa: PLC0415 - slow

    with asked_fleet(question, hours or USUAL_HOURS) as fleet:
        return report(fleet, options)


@contextmanager
def asked_fleet(
    question: FleetQuestion, hours: int, pods: tuple[str, ...] = ()
) -> "Iterator[Fleet]":
    """Open the fleet of *question* in the last *hours*, and show the number of queries so far.

    *pods* are the names of those wanted, or none for all.

    Raises InputError or MachineError.
    """
    from temper_plugin_rightsizer.fleet.queries import Scope, matchers_of  # noqa: PLC0415
    from temper_plugin_rightsizer.fleet.reading import STARTUP_S, Fleet  # noqa: PLC0415
    from temper_plugin_rightsizer.fleet.windows import Window  # noqa: PLC0415
    from temper_prometheus.access import access  # noqa: PLC0415 - slow
    from temper_prometheus.client import Prometheus  # noqa: PLC0415

    way = access(question.url or "", question.token_file, question.ca_file, question.tenant)
    scope = Scope(matchers_of(question.selectors), question.namespaces, pods)
    step_s = question.step_s or MINUTE_S
    window = Window(int(time.time()), step_s, hours * HOUR_S // step_s)
    progress = Progress()
    with Prometheus(
        way, smaller=SMALLER, notice=lambda asked: progress.show(f"query {asked}")
    ) as prometheus:
        try:
            startup_s = STARTUP_S if question.startup_s is None else question.startup_s
            yield Fleet(prometheus, scope, window, startup_s=startup_s)
        except TemperError:
            if sys.stderr.isatty():
                click.echo(err=True)  # ends the line of the progress
            raise
    progress.end(f"{prometheus.asked} queries")


def of_workload(document: Row, wanted: str | None) -> Row:
    """Return the report of one workload only: a name, ``kind/name`` or ``namespace/name``."""
    if wanted is None:
        return document
    containers = rows(document, "containers")
    chosen = [row for row in containers if wanted in _names(row)]
    if not chosen:
        known = sorted({f"{text(row, 'namespace')}/{_names(row)[0]}" for row in containers})
        first = ", ".join(map(shown, known[:MOST_KNOWN]))
        raise InputError(f"no demand of {wanted} is known; known are: {first or 'none'}")
    return {**document, "containers": chosen}


def _names(row: Row) -> tuple[str, str, str, str]:
    namespace, owner = text(row, "namespace"), text(row, "owner")
    name = owner.partition("/")[2]
    return name, owner, f"{namespace}/{name}", f"{namespace}/{owner}"
