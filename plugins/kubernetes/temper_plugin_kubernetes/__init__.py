"""Kubernetes: this node's pods, the kill switch, node annotations, events and operator tools."""

import os
import platform
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from temper_core import (
    Command,
    Exporter,
    Instrument,
    InstrumentContext,
    MachineError,
    Metric,
    MetricFamily,
    OpenInstrument,
    OpenPodSource,
    PodSource,
    PodSourceContext,
    SettingsTable,
    Snapshot,
    fit_settings,
    hookimpl,
)
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.families import FAMILIES
from temper_plugin_kubernetes.options import Options

if TYPE_CHECKING:
    import click

    from temper_kube.access import Access

__all__ = [
    "temper_commands",
    "temper_exporters",
    "temper_instruments",
    "temper_metrics",
    "temper_pod_sources",
    "temper_settings",
]

NAME = "kubernetes"
_ACCOUNT = Account()


@hookimpl
def temper_pod_sources(settings: Mapping[str, Any]) -> list[PodSource]:
    """Contribute the source ``kubernetes``."""
    summary = "The pods that the API server has bound to this node, joined with their cgroups."
    return [PodSource(NAME, partial(_open_source, _options(settings)), summary)]


@hookimpl
def temper_instruments(settings: Mapping[str, Any]) -> list[Instrument]:
    """Contribute the instrument that follows the kill switch. Empty if no API server is known."""
    options = _options(settings)
    try:
        _access(options)
    except MachineError:
        return []
    return [Instrument(NAME, partial(_open_instrument, options))]


@hookimpl
def temper_commands() -> list[Command]:
    """Contribute ``temper k8s``, the operator's tools."""
    summary = "Manage Temper in a Kubernetes cluster."
    return [Command("k8s", summary, _load_command)]


@hookimpl
def temper_exporters() -> list[Exporter]:
    """Contribute metrics of the watches and the writes."""
    return [Exporter(NAME, _metrics)]


@hookimpl
def temper_metrics() -> list[MetricFamily]:
    """Declare what the account counts."""
    return list(FAMILIES)


@hookimpl
def temper_settings() -> list[SettingsTable]:
    """Declare the table ``[plugins.kubernetes]``."""
    return [SettingsTable(Options)]


def _load_command() -> "click.Command":
    from temper_plugin_kubernetes.operators.command import command  # noqa: PLC0415 - slow

    return command


def _options(settings: Mapping[str, Any]) -> Options:
    return fit_settings(settings, Options, plugin=NAME)


def _access(options: Options) -> "Access":
    from temper_plugin_kubernetes.access import find_access  # noqa: PLC0415 - slow, for --help

    return find_access(options.kubeconfig, os.environ)


def _open_source(options: Options, context: PodSourceContext) -> OpenPodSource:
    from temper_plugin_kubernetes.pods import KubernetesPods  # noqa: PLC0415 - the same

    return KubernetesPods(context, _access(options), _at(options, context.node), _ACCOUNT)


def _open_instrument(options: Options, context: InstrumentContext) -> OpenInstrument:
    from temper_plugin_kubernetes.instrument import ClusterInstrument  # noqa: PLC0415 - the same

    return ClusterInstrument(context, _access(options), _at(options, context.node), _ACCOUNT)


def _at(options: Options, node: str) -> Options:
    """Set the node's name: from the settings, $NODE_NAME, the agent or the host, in this order."""
    name = options.node or os.environ.get("NODE_NAME", "") or node or platform.node()
    return evolve(options, node=name)


def _metrics(_: Snapshot) -> list[Metric]:
    return _ACCOUNT.metrics()
