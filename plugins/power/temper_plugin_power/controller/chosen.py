"""The settings' choices for the classifier: its rules, and the Prometheus that it asks."""

import time
from collections.abc import Callable
from pathlib import Path

import structlog

from temper_plugin_power.measuring.facility import FacilityMetrics, read_facility
from temper_plugin_power.measuring.measuring import (
    QUERY_TIMEOUT_S,
    Measured,
    Pace,
    Watcher,
    measure,
)
from temper_plugin_power.operating.facility import Facility
from temper_plugin_power.settings.classifier import ClassifierSettings
from temper_plugin_power.settings.durations import seconds
from temper_plugin_power.settings.power import PowerSettings
from temper_plugin_power.workloads.profile_files import read_profile_files
from temper_plugin_power.workloads.profiling import ProfilingChoices
from temper_plugin_power.workloads.thread_profiles import ThreadProfiles
from temper_prometheus.access import access as prometheus_access
from temper_prometheus.client import Prometheus

LARGEST_ANSWER_BYTES = 24 * 1024 * 1024
MOST_VALUES = 1_000_000
"""Of some 100,000 pods, a series of which has nine or ten. The owner of any scraped target may add
series, and those of all measures have to fit into the operator's memory.
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def profiling_choices(settings: PowerSettings, own_namespace: str) -> ProfilingChoices:
    """Return what profiles depend on by the settings. The own namespace has none.

    Raises DocumentError if the directory of thread profiles cannot be listed.
    """
    of = settings.classifier
    return ProfilingChoices(
        thread_profiles=_thread_profiles(of.traits_directory),
        derives_class=of.derive_class,
        aliases=settings.annotation_aliases,
        skipped=frozenset({*of.skip_namespaces, own_namespace}),
        gpu_proxy_watts=of.gpu_proxy_watts,
    )


def _thread_profiles(directory: str) -> ThreadProfiles:
    """Return the thread profiles of *directory*. An invalid one is logged and left out."""
    if not directory:
        return ThreadProfiles()
    read = read_profile_files(Path(directory))
    for line in read.left_out:
        log.warning("thread_profile_left_out", reason=line[:300])
    return read.profiles


def asking(settings: ClassifierSettings, watcher: Watcher) -> Callable[[], Measured]:
    """Return what asks the Prometheus of the settings once. It raises as ``measure``."""

    def ask() -> Measured:
        with _prometheus(settings) as prometheus:
            return measure(
                prometheus,
                int(time.time()),
                window_s=int(seconds(settings.metrics_window)),
                energy=settings.energy,
                pace=Pace(watcher=watcher),
            )

    return ask


def facility_asking(settings: PowerSettings, watcher: Watcher) -> Callable[[], Facility] | None:
    """Return what asks for the facility once, None if it is not to be asked.

    It raises as ``read_facility``.
    """
    of = settings.operator.facility
    if not (of.enabled and settings.classifier.prometheus_url):
        return None
    metrics = FacilityMetrics(
        *(of.ambient_metric, of.it_power_metric, of.cooling_power_metric), of.ambient_zone_label
    )

    def ask() -> Facility:
        with _prometheus(settings.classifier) as prometheus:
            return read_facility(prometheus, int(time.time()), metrics, Pace(watcher=watcher))

    return ask


def _prometheus(settings: ClassifierSettings) -> Prometheus:
    way = prometheus_access(
        settings.prometheus_url,
        _path(settings.prometheus_token_file),
        _path(settings.prometheus_ca_file),
        settings.prometheus_tenant or None,
    )
    return Prometheus(
        way,
        timeout_s=QUERY_TIMEOUT_S,
        largest_bytes=LARGEST_ANSWER_BYTES,
        most_values=MOST_VALUES,
    )


def _path(text: str) -> Path | None:
    return Path(text) if text else None
