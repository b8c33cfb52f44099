"""Workload profiles that ship with Temper, and the detectors that recognise their workloads."""

from temper_core import Detector, WorkloadProfile, hookimpl
from temper_plugin_builtin_profiles.detectors import detect_mysql, detect_pytorch
from temper_plugin_builtin_profiles.packs import read_packs

__all__ = ["temper_detectors", "temper_profiles"]


@hookimpl
def temper_profiles() -> list[WorkloadProfile]:
    """Contribute the profiles in ``packs/``."""
    return read_packs()


@hookimpl
def temper_detectors() -> list[Detector]:
    """Contribute a detector for each profile."""
    return [Detector("mysql", detect_mysql), Detector("pytorch", detect_pytorch)]
