"""``temper overcommit serve``: starts the webhook from its options."""

import asyncio
from datetime import timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from socket import socket

import prometheus_client
import structlog
from attrs import frozen

from temper_core import configure_logs, listen_on, load_settings, parse_address, tier_of
from temper_kube.api_server import ApiServer
from temper_plugin_density.cluster_access import find_access
from temper_plugin_density.overcommit.cluster import ClusterObjects
from temper_plugin_density.overcommit.keeping import CertificateKeeper
from temper_plugin_density.overcommit.material import Terms
from temper_plugin_density.overcommit.names import SYSTEM_NAMESPACE
from temper_plugin_density.overcommit.policy import Policy
from temper_plugin_density.overcommit.serving import ServingPeriods, Webhook

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class ServeOptions:
    """The options of ``serve``."""

    listen: str
    observe: str
    namespace: str
    service: str
    secret: str
    configuration: str
    also: tuple[str, ...]
    factor: Fraction
    certificate_life: timedelta
    overlap: timedelta
    check_every: timedelta
    drain: timedelta
    log_level: str
    kubeconfig: Path | None
    settings: Path | None

    @property
    def names(self) -> frozenset[str]:
        """The DNS names of the webhook's Service."""
        of_service = f"{self.service}.{self.namespace}"
        return frozenset(
            [of_service, f"{of_service}.svc", f"{of_service}.svc.cluster.local", *self.also]
        )

    @property
    def terms(self) -> Terms:
        """The names and the lifetimes of certificates."""
        return Terms(self.names, self.certificate_life, self.overlap)


@frozen
class Replica:
    """The parts of one replica."""

    policy: Policy
    keeper: CertificateKeeper
    rhythm: ServingPeriods


def start(options: ServeOptions) -> None:
    """Serve until SIGTERM. Raise InputError or MachineError if it cannot start."""
    policy = _policy(options)
    keeper = CertificateKeeper(_objects(options), options.terms)
    find_access(options.kubeconfig)  # report a mistake in it now, not at every check
    texts = {"--listen": options.listen, "--observe": options.observe}
    addresses = {option: parse_address(text, option) for option, text in texts.items()}
    listening, observed = (listen_on(address, option) for option, address in addresses.items())
    configure_logs(options.log_level)
    # They would add series with the start time of this replica to each counter.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # has no types
    log.info(
        "webhook_started",
        listening=listening.getsockname()[1],
        observed=observed.getsockname()[1],
        factor=float(options.factor),
    )
    rhythm = ServingPeriods(options.check_every, options.drain)
    asyncio.run(_serve(Replica(policy, keeper, rhythm), listening, observed))


def _policy(options: ServeOptions) -> Policy:
    mapping = load_settings(options.settings).priority_mapping
    namespaces = frozenset({SYSTEM_NAMESPACE, options.namespace})
    return Policy(partial(tier_of, mapping=mapping), options.factor, namespaces)


def _objects(options: ServeOptions) -> ClusterObjects:
    connect = partial(_connect, options.kubeconfig)
    return ClusterObjects(connect, options.namespace, options.secret, options.configuration)


def _connect(kubeconfig: Path | None) -> ApiServer:
    # The file is read each time: tokens and certificates in it change.
    return ApiServer(find_access(kubeconfig))


async def _serve(replica: Replica, listening: socket, observed: socket) -> None:
    # The webhook must be made inside its event loop.
    await Webhook(replica.policy, replica.keeper, replica.rhythm).run(listening, observed)
