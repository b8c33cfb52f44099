"""Options that several commands of this plugin have."""

from pathlib import Path

import click

EXIT_FINDINGS = 1
SETTINGS = click.option(
    "--settings",
    type=click.Path(path_type=Path),
    help="The agents' settings file (TOML), for its [priority_mapping].",
)
OUTPUT = click.option(
    "--output", type=click.Choice(["table", "json"]), default="table", show_default=True
)
