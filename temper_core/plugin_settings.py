"""Read settings in a plugin: its own table ``[plugins.<name>]``, or all of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from temper_core import documents
from temper_core.settings.models import Settings
from temper_core.settings.reader import load

Model = TypeVar("Model")


def fit_settings(table: Mapping[str, Any], model: type[Model], *, plugin: str) -> Model:
    """Fit a hook's *table* to a *model*. Raise DocumentError with every misfit."""
    return documents.fit(dict(table), model, source=f"[plugins.{plugin}]")


def load_settings(path: Path | None) -> Settings:
    """Return the settings in force, for a plugin's command. Raise DocumentError as the core does.

    Without *path* they are those of the default file if it exists.
    """
    return load(path).settings
