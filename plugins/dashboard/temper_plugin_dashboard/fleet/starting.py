"""The work of ``temper dashboard serve``, from options to a server."""

from pathlib import Path

from attrs import frozen

from temper_core import InputError, configure_logs, listen_on, parse_address
from temper_kube.kubeconfig import find_access
from temper_plugin_dashboard.fleet.application import FleetServer
from temper_plugin_dashboard.fleet.asking import AgentDoor, Way
from temper_plugin_dashboard.fleet.history import History
from temper_plugin_dashboard.fleet.sessions import Sessions, TokenFile
from temper_prometheus.access import access
from temper_serving.certificate_files import CertificateFiles
from temper_serving.running import serve

LISTEN = "--listen"


@frozen(kw_only=True)
class Start:
    """The options of the command."""

    listen: str
    token_file: Path
    namespace: str
    reach: str
    every_s: float
    pod_parts: tuple[str, ...]
    has_actions: bool
    certificate: Path | None
    key: Path | None
    url: str | None
    prometheus_token_file: Path | None
    ca_file: Path | None
    tenant: str | None
    log_level: str
    kubeconfig: Path | None


def start(options: Start) -> None:
    """Serve until SIGTERM. Raise InputError or MachineError if it cannot start."""
    tokens = TokenFile(options.token_file)
    tokens.digest()
    certificate = _certificate(options)
    history = _history(options)
    listening = parse_address(options.listen, LISTEN)
    configure_logs(options.log_level)
    door = AgentDoor(
        find_access(str(options.kubeconfig or "")),
        Way(options.reach),
        has_actions=options.has_actions,
    )
    server = FleetServer(
        door,
        Sessions(tokens),
        options.namespace,
        history=history,
        pod_parts=options.pod_parts,
        every_s=options.every_s,
    )
    bound = listen_on(listening, LISTEN)
    application = server.application(certificate)
    serve(application, bound, named="dashboard", certificate=certificate)


def _certificate(options: Start) -> CertificateFiles | None:
    if options.certificate is None and options.key is None:
        return None
    if options.certificate is None or options.key is None:
        raise InputError("--certificate and --key need each other")
    return CertificateFiles.load(options.certificate, options.key)


def _history(options: Start) -> History | None:
    if not options.url:
        return None
    token_file, ca_file = options.prometheus_token_file, options.ca_file
    return History(access(options.url, token_file, ca_file, options.tenant))
