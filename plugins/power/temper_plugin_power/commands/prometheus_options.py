"""The options of commands that ask a Prometheus, and the asking."""

import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from temper_plugin_power.measuring.measuring import (
    QUERY_TIMEOUT_S,
    WINDOW_S,
    Measured,
    measure,
)
from temper_plugin_power.settings.classifier import ENERGIES
from temper_prometheus.options import DurationRange, access_options
from temper_serving.options import KUBECONFIG

SHORTEST_WINDOW_S, LONGEST_WINDOW_S = 60, 24 * 3600


@frozen
class PrometheusQuestion:
    """The Prometheus to ask, and how. Without a ``url`` none is asked."""

    url: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    tenant: str | None = None
    window_s: int | None = None
    energy: str | None = None
    kubeconfig: Path | None = None

    def ask(self) -> Measured:
        """Return the measures of all pods now. Raises InputError or MachineError."""
        from temper_prometheus.access import access  # noqa: PLC0415 - slow
        from temper_prometheus.client import Prometheus  # noqa: PLC0415 - slow

        way = access(self.url or "", self.token_file, self.ca_file, self.tenant)
        with Prometheus(way, timeout_s=QUERY_TIMEOUT_S) as prometheus:
            return measure(
                prometheus,
                int(time.time()),
                window_s=self.window_s or WINDOW_S,
                energy=self.energy or "auto",
            )


OPTIONS = {
    **access_options("Ask this Prometheus, Thanos or Mimir about all pods."),
    "window_s": click.option(
        "--window",
        "window_s",
        type=DurationRange(SHORTEST_WINDOW_S, LONGEST_WINDOW_S),
        metavar="DURATION",
        help="The time over which rates are taken. [default: 10m]",
    ),
    "energy": click.option(
        "--energy",
        type=click.Choice(ENERGIES),
        help="How Kepler attributes energy. [default: auto, by the families that are exported]",
    ),
    "kubeconfig": KUBECONFIG,
}
"""The options by the fields of PrometheusQuestion."""


def prometheus_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give *command* the options of a Prometheus, as its argument ``asked``."""

    @wraps(command)
    def asking(**given: Any) -> int:  # noqa: ANN401 - click's own
        question = PrometheusQuestion(**{name: given.pop(name) for name in OPTIONS})
        if question.url is None and question != PrometheusQuestion():
            raise click.UsageError(
                "an option of a Prometheus, such as --window, needs --prometheus"
            )
        return command(asked=question, **given)

    decorated: Callable[..., int] = asking
    for option in reversed(OPTIONS.values()):
        decorated = option(decorated)
    return decorated
