"""A detector, an exporter and an invariant for batch jobs."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from temper_core import (
    Detector,
    Exporter,
    Invariant,
    MetricFamily,
    SettingsTable,
    fit_settings,
    hookimpl,
)
from temper_plugin_batch_guard.batch_usage import CPUS_USED, PODS, batch_usage
from temper_plugin_batch_guard.in_the_way import batch_in_the_way
from temper_plugin_batch_guard.limits import Limits
from temper_plugin_batch_guard.recognise import recognise


@hookimpl
def temper_detectors(settings: Mapping[str, Any]) -> list[Detector]:
    """Contribute the detector of batch jobs."""
    limits = fit_settings(settings, Limits, plugin="batch-guard")
    return [Detector("batch-jobs", partial(recognise, limits=limits))]


@hookimpl
def temper_exporters(settings: Mapping[str, Any]) -> list[Exporter]:
    """Contribute the metrics of batch jobs."""
    limits = fit_settings(settings, Limits, plugin="batch-guard")
    return [Exporter("batch-usage", partial(batch_usage, limits=limits))]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare the exporter's metrics."""
    return [PODS, CPUS_USED]


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare the keys of ``[plugins.batch-guard]``."""
    return [SettingsTable(Limits)]


@hookimpl
def temper_invariants(settings: Mapping[str, Any]) -> list[Invariant]:
    """Contribute the invariant that batch jobs do not delay important threads."""
    limits = fit_settings(settings, Limits, plugin="batch-guard")
    why = "a batch job can wait, and whoever answers somebody cannot"
    return [Invariant("batch_in_the_way", partial(batch_in_the_way, limits=limits), why)]
