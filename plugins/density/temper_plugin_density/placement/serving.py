"""Runs the extender until a signal ends it."""

import asyncio
import signal
import socket

import structlog
from starlette.applications import Starlette

from temper_core import BoundedServer, Bounds

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def serve(application: Starlette, listening: socket.socket) -> None:
    """Answer until SIGTERM or Ctrl-C."""
    host, port = listening.getsockname()[:2]
    log.info("placement_served", host=host, port=port)
    asyncio.run(_serve(application, listening))
    log.info("placement_ended")


async def _serve(application: Starlette, listening: socket.socket) -> None:
    server = BoundedServer(application, Bounds(), has_lifespan=True)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.tell_to_stop)
    await server.serve([listening])
