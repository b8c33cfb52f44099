"""The option ``--plugins-dir``, the same in every command that has it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from temper_core.settings.models import Settings

PLUGINS_DIRECTORY = click.option(
    "--plugins-dir",
    "plugins_directory",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="Directory of plugins of one file each, in place of [plugin_host] directory.",
)


def with_plugins_directory(settings: "Settings", directory: Path | None) -> "Settings":
    """Return *settings* with *directory* for plugin files, unchanged without one."""
    from attrs import evolve

    if directory is None:
        return settings
    return evolve(settings, plugin_host=evolve(settings.plugin_host, directory=str(directory)))
