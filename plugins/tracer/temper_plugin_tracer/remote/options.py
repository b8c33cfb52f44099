"""Options of the commands that capture through the API server."""

from collections.abc import Callable
from typing import Any

import click

from temper_core.console import FiniteRange
from temper_plugin_tracer.capture import bounds

Decorated = Callable[..., Any]
_OPTIONS = (
    click.option("--kubeconfig", default="", metavar="FILE", help="Instead of KUBECONFIG."),
    click.option("--context", default="", help="Instead of the current one."),
    click.option(
        "-n", "--namespace", default="temper", show_default=True, help="Where Temper is installed."
    ),
    click.option(
        "--seconds",
        type=FiniteRange(min=bounds.LEAST_S, max=bounds.LONGEST_S),
        default=bounds.USUAL_S,
        show_default=True,
        help="Duration of the recording.",
    ),
)


def capture_options(command: Decorated) -> Decorated:
    """Add the cluster, Temper's namespace and the duration to a *command*."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
