"""The prices of a settings file."""

from pathlib import Path

from temper_core import fit_settings, load_settings
from temper_plugin_rightsizer.options import Options
from temper_plugin_rightsizer.prices.settings import Prices

PLUGIN = "rightsizer"


def prices_in(path: Path | None) -> Prices:
    """Return the prices of the settings file *path*, or of the default one if it exists.

    Raises DocumentError.
    """
    return fit_settings(load_settings(path).plugins.get(PLUGIN, {}), Options, plugin=PLUGIN).prices
