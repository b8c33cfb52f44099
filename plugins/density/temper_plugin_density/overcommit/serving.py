"""Runs the webhook: two servers, and a task that keeps the certificate current."""

import asyncio
import signal
import ssl
from datetime import timedelta
from socket import socket

import structlog
from attrs import frozen

from temper_core import BoundedServer, Bounds, MachineError
from temper_plugin_density.overcommit.application import observed_app, webhook_app
from temper_plugin_density.overcommit.certificates import period_of
from temper_plugin_density.overcommit.keeping import CertificateKeeper
from temper_plugin_density.overcommit.material import Material
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.policy import Policy
from temper_plugin_density.overcommit.presenting import present
from temper_plugin_density.overcommit.tallies import Tallies
from temper_serving.tls import server_context

FIRST_PAUSE_S = 0.5
WEBHOOK_BOUNDS = Bounds(most_open=128, most_waiting=128, most_shaking=64)
"""Of the port that the API server calls, which opens a connection for each request at a time. A
connection with TLS takes up to 0.5 MiB."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class ServingPeriods:
    """How often the cluster is checked, and how long a stop waits."""

    check_every: timedelta = timedelta(seconds=30)
    drain: timedelta = timedelta(seconds=5)
    """After SIGTERM the API server may still send calls here for a moment."""


class Webhook:
    """Everything that runs in one replica."""

    def __init__(self, policy: Policy, keeper: CertificateKeeper, rhythm: ServingPeriods) -> None:
        self._tallies = Tallies()
        self._keeper, self._rhythm = keeper, rhythm
        self._context: ssl.SSLContext = server_context()
        self._presented: Material | None = None
        self._has_certificate = asyncio.Event()
        self._stopping = asyncio.Event()
        self._problem = "no certificate yet"
        webhook = webhook_app(policy, self._tallies)
        self._webhook = BoundedServer(
            webhook,
            WEBHOOK_BOUNDS,
            context=self._context,
            refused=self._tallies.admissions.labels(Outcome.REFUSED).inc,
        )
        self._observed = BoundedServer(observed_app(self.why_unready, self._tallies), Bounds())

    def why_unready(self) -> str:
        """Return why no pods are served. Empty while they are."""
        if self._stopping.is_set():
            return "stopping"
        if self._presented is None or not self._keeper.is_trusted:
            return self._problem
        return ""

    async def run(self, listening: socket, observed: socket) -> None:
        """Serve until SIGTERM or SIGINT. Requests in progress are answered."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        keeping = asyncio.create_task(self._keep())
        serving = [
            asyncio.create_task(self._observed.serve([observed])),
            asyncio.create_task(self._serve(listening)),
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        # The keeping task ends only through a bug. The webhook then stops, so that a restart renews
        # the certificate.
        await asyncio.wait([stopping, keeping, *serving], return_when=asyncio.FIRST_COMPLETED)
        await self._stop(serving)
        if keeping.done():
            keeping.result()
        keeping.cancel()

    async def _stop(self, serving: list[asyncio.Task[None]]) -> None:
        log.info("webhook_stopping")
        if self._stopping.is_set() and self._presented is not None:
            await asyncio.sleep(self._rhythm.drain.total_seconds())
        self._stopping.set()
        self._has_certificate.set()
        for server in (self._webhook, self._observed):
            server.tell_to_stop()
        await asyncio.gather(*serving)
        log.info("webhook_stopped")

    async def _serve(self, listening: socket) -> None:
        await self._has_certificate.wait()
        if self._presented is None:
            listening.close()
            return
        await self._webhook.serve([listening])

    async def _keep(self) -> None:
        """Check the Secret and the configuration periodically."""
        failures = 0
        while True:
            failures = failures + 1 if await self._check() else 0
            await asyncio.sleep(self._pause_s(failures))

    def _pause_s(self, failures: int) -> float:
        # A new configuration has no authority yet, so the first checks follow quickly.
        longest = self._rhythm.check_every.total_seconds()
        soon = FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16)
        return min(soon, longest) if failures else longest

    async def _check(self) -> bool:
        problem = ""
        try:
            await asyncio.to_thread(self._keeper.check)
        except MachineError as error:
            problem = str(error)
        try:
            self._take_up()
        except (OSError, ValueError) as error:
            problem = problem or f"OpenSSL refuses the certificate: {error}"
        if problem:
            self._tallies.check_failures.inc()
            log.warning("certificate_check_failed", reason=problem)
        self._problem = problem or "no certificate yet"
        return bool(problem)

    def _take_up(self) -> None:
        """Serve the keeper's certificate. Keep the last one, and raise, if OpenSSL refuses it.

        It refuses what is too weak for its security level, for example (ssl.SSLError, an OSError).
        """
        material = self._keeper.material
        if material is None or material == self._presented:
            return
        if self._presented is None or self._presented.certificate != material.certificate:
            present(server_context(), material)  # a context may keep half of what it refuses
            present(self._context, material)
            self._tallies.certificates.inc()
        self._presented = material
        self._tallies.certificate_expiry.set(period_of(material.certificate).expiry)
        authority = self._keeper.authority or material.chain[-1]
        self._tallies.authority_expiry.set(period_of(authority).expiry)
        self._has_certificate.set()
