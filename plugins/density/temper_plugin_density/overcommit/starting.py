"""``temper overcommit serve``: from the options to a webhook at work."""

import asyncio
from datetime import timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from socket import socket

import prometheus_client
import structlog
from attrs import frozen

from temper_core import InputError, listen_on, load_settings, parse_address, tier_of
from temper_core.logs import configure
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
    authority_life: timedelta
    overlap: timedelta
    check_every: timedelta
    drain: timedelta
    log_level: str
    kubeconfig: Path | None
    settings: Path | None

    @property
    def names(self) -> frozenset[str]:
        """What the API server may call the webhook."""
        of_service = f"{self.service}.{self.namespace}"
        return frozenset(
            [of_service, f"{of_service}.svc", f"{of_service}.svc.cluster.local", *self.also]
        )

    @property
    def terms(self) -> Terms:
        """For whom certificates are made, and for how long."""
        if self.certificate_life > self.authority_life / 3:
            raise InputError("--certificate-life must be at most a third of --authority-life")
        return Terms(self.names, self.certificate_life, self.authority_life, self.overlap)


@frozen
class Replica:
    """What one replica is made of."""

    policy: Policy
    keeper: CertificateKeeper
    rhythm: ServingPeriods


def start(asked: ServeOptions) -> None:
    """Serve until SIGTERM. Raise InputError or MachineError where that cannot begin."""
    policy = _policy(asked)
    keeper = CertificateKeeper(_objects(asked), asked.terms)
    find_access(asked.kubeconfig)  # a mistake in it is reported at once, not at every check
    wanted = {"--listen": asked.listen, "--observe": asked.observe}
    addresses = {option: parse_address(text, option) for option, text in wanted.items()}
    listening, observed = (listen_on(each, option) for option, each in addresses.items())
    configure(asked.log_level)
    # Two series more for each counter, which say when this replica started.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # has no types
    log.info(
        "webhook_started",
        listening=listening.getsockname()[1],
        observed=observed.getsockname()[1],
        factor=float(asked.factor),
    )
    rhythm = ServingPeriods(asked.check_every, asked.drain)
    asyncio.run(_serve(Replica(policy, keeper, rhythm), listening, observed))


def _policy(asked: ServeOptions) -> Policy:
    mapping = load_settings(asked.settings).priority_mapping
    spared = frozenset({SYSTEM_NAMESPACE, asked.namespace})
    return Policy(partial(tier_of, mapping=mapping), asked.factor, spared)


def _objects(asked: ServeOptions) -> ClusterObjects:
    connect = partial(_connect, asked.kubeconfig)
    return ClusterObjects(connect, asked.namespace, asked.secret, asked.configuration)


def _connect(kubeconfig: Path | None) -> ApiServer:
    # The file is read anew each time: tokens and certificates in it change.
    return ApiServer(find_access(kubeconfig))


async def _serve(replica: Replica, listening: socket, observed: socket) -> None:
    # Made where its event loop is.
    await Webhook(replica.policy, replica.keeper, replica.rhythm).run(listening, observed)
