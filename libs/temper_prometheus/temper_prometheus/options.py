"""Options of commands that ask a Prometheus."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from temper_prometheus.durations import as_duration, duration_s

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class DurationRange(click.ParamType[int]):
    """A duration such as ``5m``, in seconds. One out of range is a wrong option."""

    name = "duration"

    def __init__(self, least_s: int, most_s: int) -> None:
        self._least_s = least_s
        self._most_s = most_s

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the seconds."""
        try:
            seconds = duration_s(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not self._least_s <= seconds <= self._most_s:
            least, most = as_duration(self._least_s), as_duration(self._most_s)
            self.fail(f"must be from {least} to {most}", param, ctx)
        return seconds


def access_options(meaning: str) -> Mapping[str, Decorator]:
    """Return the options of ``access`` by its parameters. *meaning* is the help of the address."""
    return {
        "url": click.option("--prometheus", "url", metavar="URL", help=meaning),
        "token_file": click.option(
            "--prometheus-token-file",
            "token_file",
            type=click.Path(path_type=Path),
            help="A file with the bearer token for it.",
        ),
        "ca_file": click.option(
            "--prometheus-ca-file",
            "ca_file",
            type=click.Path(path_type=Path),
            help="The certificates (PEM) that its own is checked by. [default: the system's]",
        ),
        "tenant": click.option(
            "--prometheus-tenant", "tenant", metavar="NAME", help="The tenant of a Mimir."
        ),
    }
