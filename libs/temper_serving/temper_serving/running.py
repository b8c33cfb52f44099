"""Runs one application until a signal ends it."""

import asyncio
import signal
import socket

import structlog
from starlette.applications import Starlette

from temper_core import BoundedServer, Bounds
from temper_serving.certificate_files import CertificateFiles

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def serve(
    application: Starlette,
    listening: socket.socket,
    *,
    named: str,
    certificate: CertificateFiles | None = None,
) -> None:
    """Answer until SIGTERM or Ctrl-C, by TLS if there is a *certificate*.

    *named* is what the log calls the server.
    """
    host, port = listening.getsockname()[:2]
    log.info(f"{named}_served", host=host, port=port)  # noqa: G004 - one event of each server
    asyncio.run(_serve(application, listening, certificate))
    log.info(f"{named}_ended")  # noqa: G004


async def _serve(
    application: Starlette, listening: socket.socket, certificate: CertificateFiles | None
) -> None:
    context = None if certificate is None else certificate.context
    server = BoundedServer(application, Bounds(), context=context, has_lifespan=True)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.tell_to_stop)
    keeping = None if certificate is None else asyncio.create_task(certificate.keep())
    await server.serve([listening])
    if keeping is not None:
        keeping.cancel()
