"""Workload profiles that ship with Temper.

They are recognised by images, else by the names of main processes. There are no detectors: those go
before images, and a detector that knows ``mysqld`` would take a pod away from the profile that
somebody wrote for its image.
"""

from temper_core import WorkloadProfile, hookimpl
from temper_plugin_builtin_profiles.packs import read_packs

__all__ = ["temper_profiles"]


@hookimpl
def temper_profiles() -> list[WorkloadProfile]:
    """Contribute the profiles in ``packs/``."""
    return read_packs()
