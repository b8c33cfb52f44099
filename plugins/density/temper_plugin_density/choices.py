"""Options that several commands of this plugin have."""

from pathlib import Path

import click

from temper_core.console import output_option

EXIT_FINDINGS = 1
SETTINGS = click.option(
    "--settings",
    type=click.Path(path_type=Path),
    help="The agents' settings file (TOML), for its [priority_mapping].",
)
OUTPUT = output_option
