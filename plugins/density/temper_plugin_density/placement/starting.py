"""The work of ``temper placement``'s commands, from options to results."""

import shutil
import sys
from pathlib import Path

import prometheus_client

from temper_core import configure_logs, listen_on, load_settings, parse_address
from temper_core.console import document_text
from temper_plugin_density.cluster_access import find_access
from temper_plugin_density.placement.app import Extender
from temper_plugin_density.placement.asking import PodReader
from temper_plugin_density.placement.asking_once import score_once
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.showing import table_text
from temper_serving.running import serve

LISTEN = "--listen"
NARROWEST = 80


def start(address: str, log_level: str, kubeconfig: Path | None, settings: Path | None) -> None:
    """Serve until SIGTERM. Raise InputError or MachineError if it cannot start."""
    reader = PodReader(load_settings(settings).priority_mapping)
    listening = parse_address(address, LISTEN)
    configure_logs(log_level)
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    access = find_access(kubeconfig)
    application = Extender(reader, Ledger()).application(access)
    serve(application, listen_on(listening, LISTEN), named="placement")


def show(pod: str, output: str, kubeconfig: Path | None, settings: Path | None) -> tuple[str, bool]:
    """Return the scores as text, and whether any node has a score above 0."""
    reader = PodReader(load_settings(settings).priority_mapping)
    document = score_once(pod, reader, kubeconfig)
    has_candidate = any(node["score"] for node in document["nodes"])
    if output == "json":
        return document_text(document), has_candidate
    return table_text(document, _width()), has_candidate


def _width() -> int | None:
    if not sys.stdout.isatty():
        return None
    return max(NARROWEST, shutil.get_terminal_size().columns)
