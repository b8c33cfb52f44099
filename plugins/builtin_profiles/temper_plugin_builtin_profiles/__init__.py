"""Workload profiles that ship with Temper.

They match pods by image, else by the name of the main process. They have no detectors: a detector
takes precedence over images, so one for ``mysqld`` would override an operator's profile for the
pod's image.
"""

from temper_core import SettingsTable, WorkloadProfile, hookimpl
from temper_plugin_builtin_profiles.packs import read_packs

__all__ = ["temper_profiles", "temper_settings"]


@hookimpl
def temper_profiles() -> list[WorkloadProfile]:
    """Contribute the profiles in ``packs/``."""
    return read_packs()


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare that ``[plugins.builtin-profiles]`` has no keys."""
    return [SettingsTable()]
