"""Runs one application until a signal ends it."""

import asyncio
import signal
import socket
import ssl

import structlog
from starlette.applications import Starlette

from temper_core import BoundedServer, Bounds

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def serve(
    application: Starlette,
    listening: socket.socket,
    *,
    named: str,
    bounds: Bounds | None = None,
    context: ssl.SSLContext | None = None,
) -> None:
    """Answer until SIGTERM or Ctrl-C, by TLS if there is a *context*.

    *named* is what the log calls the server.
    """
    host, port = listening.getsockname()[:2]
    log.info(f"{named}_served", host=host, port=port)  # noqa: G004 - one event of each server
    asyncio.run(_serve(application, listening, bounds or Bounds(), context))
    log.info(f"{named}_ended")  # noqa: G004


async def _serve(
    application: Starlette,
    listening: socket.socket,
    bounds: Bounds,
    context: ssl.SSLContext | None,
) -> None:
    server = BoundedServer(application, bounds, context=context, has_lifespan=True)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.tell_to_stop)
    await server.serve([listening])
