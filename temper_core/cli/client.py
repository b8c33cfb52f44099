"""What the commands that ask the agent share: their options, and how they ask."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from temper_core.settings import Settings

settings_option = click.option(
    "--settings",
    "settings_path",
    type=click.Path(path_type=Path),
    help="The agent's settings file (TOML), which says where it listens.",
)
output_option = click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True
)


def read_settings(path: Path | None) -> "Settings":
    """Read the settings at *path*, or the default ones; raise DocumentError for mistakes."""
    from temper_core.settings import load

    return load(path).settings


def observation(settings: "Settings", top: int | None = None) -> Mapping[str, Any]:
    """Ask the agent for ``/observe`` with its *top* busiest threads; raise as ``ask_agent``."""
    from temper_core.client import ask_agent
    from temper_core.errors import MachineError

    query = {} if top is None else {"top": str(top)}
    document = ask_agent("/observe", query, settings=settings)
    if not isinstance(document, dict):
        raise MachineError("the agent's answer to /observe is not an observation")
    return document


def print_json(value: object) -> None:
    """Print *value* as JSON for a machine."""
    import json

    click.echo(json.dumps(value, indent=2))
