"""Runs the extender until it is told to end: listens, and leaves signals to this module."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
import uvicorn
from starlette.applications import Starlette

from temper_core import InputError, MachineError

MOST_AT_ONCE = 256
KEPT_OPEN_S = 60
"""kube-scheduler keeps its connections, and asks again within seconds."""
GRACE_S = 5
HIGHEST_PORT = 65_535

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Server(uvicorn.Server):
    """Ends with exit code 0 when it is told to, instead of by the signal itself."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGTERM and SIGINT, for as long as it serves."""
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, self.handle_exit, each, None)
        try:
            yield
        finally:
            for each in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(each)


def parse_address(text: str) -> tuple[str, int]:
    """Read ``host:port`` or ``[IPv6]:port``; raise InputError for anything else."""
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_port = port.isascii() and port.isdigit() and int(port) <= HIGHEST_PORT
    if not (colon and bare and is_port) or (":" in bare and bare == host):
        raise InputError(
            f"--listen: must be an address and a port such as '0.0.0.0:8888', not {text!r}"
        )
    return bare, int(port)


def listen(address: tuple[str, int]) -> socket.socket:
    """Listen at *address*; raise MachineError where that cannot be."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        listener = socket.create_server(address, family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        raise MachineError(f"cannot listen on {address[0]}:{address[1]}: {reason}") from error
    # asyncio does it for sockets of a named protocol only; without, a peer that acknowledges late
    # has the second half of every answer 40 ms later.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def serve(application: Starlette, listener: socket.socket) -> None:
    """Answer until SIGTERM or Ctrl-C."""
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        limit_concurrency=MOST_AT_ONCE,
        timeout_keep_alive=KEPT_OPEN_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    host, port = listener.getsockname()[:2]
    log.info("placement_served", host=host, port=port)
    asyncio.run(Server(config).serve(sockets=[listener]))
    log.info("placement_ended")
