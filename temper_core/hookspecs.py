"""The hooks that a plugin may implement.

A hook only returns records. The agent decides when a record takes effect. Arguments may be added
in any release, because an implementation names only those it uses.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pluggy import HookimplMarker, HookspecMarker

from temper_core.records.contributions import Command, Detector, Exporter, PodSource
from temper_core.records.declarations import MetricFamily, SettingsTable
from temper_core.records.endpoints import Endpoint
from temper_core.records.instruments import Instrument
from temper_core.records.invariants import Invariant
from temper_core.records.profiles import WorkloadProfile

PROJECT = "temper"
ENTRY_POINTS = "temper.plugins"

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)


@hookspec
def temper_profiles(settings: Mapping[str, Any]) -> Iterable[WorkloadProfile]:  # type: ignore[empty-body]
    """Ship workload profiles that pods can be matched with.

    Called
        When the agent starts, and by every command that plans or lists profiles.
    Given
        ``settings``: this plugin's own table ``[plugins.<name>]``, empty when absent.
    Returned
        Profiles. An id that two plugins claim goes to neither. A file of that id in the profiles
        directory wins over a plugin's.
    On failure
        The plugin's profiles are missing and its pods stay in their tier's layer. Enforcement
        goes on. A plugin that did not answer in time because it waited, as for a slow disk, is
        asked again by the agent.
    """


@hookspec
def temper_detectors(settings: Mapping[str, Any]) -> Iterable[Detector]:  # type: ignore[empty-body]
    """Recognise workloads that neither an annotation nor an image name identifies.

    Called
        When the agent starts. Each ``detect`` is called once per pod and change of the pod.
    Given
        ``settings``: this plugin's own table ``[plugins.<name>]``, empty when absent.
    Returned
        Detectors. The detection with the highest confidence wins. Equal ones are ordered by name.
    On failure
        Fewer workloads are recognised: pods fall through to the image match. Nothing else changes.
        A plugin that did not answer in time because it waited is asked again by the agent.
    """


@hookspec
def temper_invariants(settings: Mapping[str, Any]) -> Iterable[Invariant]:  # type: ignore[empty-body]
    """Add invariants that the linter checks on every snapshot.

    Called
        When the agent starts. Each ``check`` is called once per observation window.
    Given
        ``settings``: this plugin's own table ``[plugins.<name>]``, empty when absent.
    Returned
        Invariants. ``check`` yields a finding per subject that breaks the invariant in this window.
        The subject identifies a violation over windows, so it holds no thread or process number.
    On failure
        The other invariants are still checked. The missing ones are reported as a violation of
        ``plugin_health`` and in ``temper plugins``. Enforcement goes on.
    """


@hookspec
def temper_exporters(settings: Mapping[str, Any]) -> Iterable[Exporter]:  # type: ignore[empty-body]
    """Add metrics to ``/metrics``.

    Called
        When the agent starts. Each ``collect`` is called at every scrape with the last snapshot.
    Given
        ``settings``: this plugin's own table ``[plugins.<name>]``, empty when absent.
    Returned
        Exporters. A metric name that is already taken is dropped and counted.
    On failure
        The plugin's metrics are missing and ``temper_plugin_failures_total`` counts it. The scrape
        succeeds.
    """


@hookspec
def temper_pod_sources(settings: Mapping[str, Any]) -> Iterable[PodSource]:  # type: ignore[empty-body]
    """Add a source of the node's pods.

    Called
        When the agent starts. Only the source that ``[pods] source`` names is opened.
    Given
        ``settings``: this plugin's own table ``[plugins.<name>]``, empty when absent.
    Returned
        Pod sources. A name that two plugins claim goes to neither.
    On failure
        If the chosen source is missing, the agent does not start and lists the available sources.
        A source that fails later leaves the last known pods in force, and the age is reported.
    """


@hookspec
def temper_instruments(settings: Mapping[str, Any]) -> Iterable[Instrument]:  # type: ignore[empty-body]
    """Add parts that run in the agent: they observe, answer, measure, check, record and act.

    Called
        When the agent starts. Each ``open`` is called with its context before anything is
        enforced, the methods of the instrument it returns while the agent runs, and ``close`` when
        the agent has ended the engine.
    Given
        ``settings``: this plugin's own table ``[plugins.<name>]``, empty when absent.
    Returned
        Instruments. A name that two plugins claim goes to neither.
    On failure
        A method that fails is set aside, and its section, endpoints, metrics, checks or events are
        missing. A request for safe mode that the instrument has made stands. Enforcement goes on.
        Once `tell` is set aside, `let_go` is called.
    """


@hookspec
def temper_commands() -> Iterable[Command]:  # type: ignore[empty-body]
    """Add commands to ``temper``, ``temper profiles`` or ``kubectl temper``.

    Called
        When a command is not one of the group's own, and for the help of the group.
    Returned
        Commands, each with the group it is ``under``. A name of the group's own, or one that two
        plugins claim in one group, goes to no plugin.
    On failure
        The plugin's commands are missing. The core's own commands work. A command that raises ends
        with exit code 2 and one line that names the plugin.
    """


@hookspec
def temper_endpoints(settings: Mapping[str, Any]) -> Iterable[Endpoint]:  # type: ignore[empty-body]
    """Add HTTP endpoints to the agent.

    Called
        When the agent starts its server.
    Given
        ``settings``: this plugin's own table ``[plugins.<name>]``, empty when absent.
    Returned
        Endpoints. A method and path of the core's own, or claimed twice, goes to no plugin.
    On failure
        The endpoint answers 503 and names the plugin. Every other endpoint works.
    """


@hookspec
def temper_settings() -> Iterable[SettingsTable]:  # type: ignore[empty-body]
    """Declare the keys of the plugin's own table ``[plugins.<name>]``.

    Called
        By ``temper settings``, and when the page of settings is written.
    Returned
        One ``SettingsTable`` with the attrs class that the plugin fits its table to. Every field
        has a default, and its meaning in its metadata. ``SettingsTable()`` declares a table
        without keys.
    On failure
        The plugin is named, and ``temper settings`` prints its table as it was given.
    """


@hookspec
def temper_metrics() -> Iterable[MetricFamily]:  # type: ignore[empty-body]
    """Declare the families that the plugin's exporters, instruments and services export.

    Called
        When the agent starts, and when the page of metrics and the dashboards are written.
    Returned
        Families. A name that two plugins claim goes to neither. A plugin that declares none is not
        held to it.
    On failure
        The plugin is set aside and its metrics are missing. A family that is exported and not
        declared, or differs from its declaration, is exported, and named as a defect.
    """
