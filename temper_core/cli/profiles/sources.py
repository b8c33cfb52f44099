"""The options for the sources of profiles, and the catalogue that is loaded from them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from temper_core.console import output_option

if TYPE_CHECKING:
    from temper_core.profiles.catalogue import ProfileCatalogue


def profile_sources(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options ``settings``, ``profiles`` and ``output``."""
    settings = click.Path(path_type=Path)
    directory = click.Path(path_type=Path, exists=True, file_okay=False)
    for option in (
        output_option,
        click.option("--profiles", type=directory, help="Directory of profile files."),
        click.option("--settings", type=settings, help="Settings file (TOML)."),
    ):
        function = option(function)
    return function


def load_profiles(settings: Path | None, directory: Path | None) -> "ProfileCatalogue":
    """Load the profiles of plugins, and those of *directory* or else of the settings."""
    from temper_core.plugin_host import load_host
    from temper_core.profiles.loading import load_catalogue
    from temper_core.settings import load

    effective = load(settings).settings
    return load_catalogue(effective, load_host(effective), directory)
