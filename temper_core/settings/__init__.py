"""The settings: one module per topic, every number with its unit and reason."""

from temper_core.settings.models import Settings
from temper_core.settings.reader import DEFAULT_PATH, Effective, load

__all__ = ["DEFAULT_PATH", "Effective", "Settings", "load"]
