"""Starts ``temper power extender`` from its options."""

from pathlib import Path

import prometheus_client
import structlog
from attrs import evolve, frozen

from temper_core import InputError, MachineError, configure_logs, listen_on, parse_address
from temper_kube import kubeconfig
from temper_kube.access import Access
from temper_plugin_power.extender.application import PowerExtender, Rules
from temper_plugin_power.extender.asking import Reading
from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.settings.durations import seconds
from temper_plugin_power.settings.power import PowerSettings, power_settings
from temper_serving.certificate_files import CertificateFiles
from temper_serving.running import serve

LISTEN = "--listen"
IN_SETTINGS = "[plugins.power.extender] listen"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class ServeOptions:
    """The options of ``temper power extender``."""

    listen: str | None
    score_scale: str | None
    log_level: str
    kubeconfig: Path | None
    settings: Path | None
    certificate: Path | None
    key: Path | None


def start(options: ServeOptions) -> None:
    """Serve until SIGTERM. Raise InputError or MachineError if it cannot start."""
    settings = power_settings(options.settings)
    named = LISTEN if options.listen else IN_SETTINGS
    address = parse_address(options.listen or settings.extender.listen, named)
    certificate = _certificate(options)
    configure_logs(options.log_level)
    # They would add series with the start time of this replica to each counter.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # has no types
    rules = rules_of(settings)
    if options.score_scale:
        rules = evolve(rules, score_scale=int(options.score_scale))
    extender = PowerExtender(rules, Cluster(), certificate=certificate)
    application = extender.application(_access(options))
    listening = listen_on(address, named)
    serve(application, listening, named="power_extender", certificate=certificate)


def rules_of(settings: PowerSettings) -> Rules:
    """Return the rules of the answers."""
    extender = settings.extender
    ttl_s = seconds(extender.eviction_history_ttl)
    reading = Reading(settings.annotation_aliases, settings.min_confidence, ttl_s)
    return Rules(extender.choices, reading, extender.score_scale)


def _access(options: ServeOptions) -> Access | None:
    """Return the API server. None if no one is known: then nothing is known of any node."""
    try:
        return kubeconfig.find_access(str(options.kubeconfig or ""))
    except MachineError as error:
        log.warning("cluster_not_known", reason=str(error))
        return None


def _certificate(options: ServeOptions) -> CertificateFiles | None:
    if options.certificate is None and options.key is None:
        return None
    if options.certificate is None or options.key is None:
        raise InputError("--certificate, --key: TLS needs both")
    return CertificateFiles.load(options.certificate, options.key)
