"""Sockets and TLS: where the webhook listens, and how a certificate is changed while it does."""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from attrs import frozen
from starlette.types import ASGIApp

from temper_core import InputError, MachineError
from temper_plugin_density.overcommit import certificates as x509
from temper_plugin_density.overcommit.material import Material

KEEP_ALIVE_S = 120
"""Longer than the API server keeps an idle connection (90 s): it never writes into a closed one."""
STOP_S = 5
MOST_CONNECTIONS = 512
LARGEST_PORT = 65_535


@frozen
class Address:
    """Where to listen."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read ``host:port``, with an IPv6 address in brackets; raise InputError otherwise."""
        host, _, port = text.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or int(port) > LARGEST_PORT:
            raise InputError(f"{text!r} is no address to listen on such as 0.0.0.0:8443")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def listen(self) -> socket.socket:
        """Return a socket that listens there; raise MachineError where that is not possible."""
        try:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            listening = socket.create_server((self.host, self.port), family=family, backlog=1024)
        except OSError as error:
            reason = error.strerror or str(error)
            raise MachineError(f"cannot listen on {self.host}:{self.port}: {reason}") from error
        # asyncio would set it, but not on what a socket of create_server accepts: 40 ms an answer.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setblocking(False)
        return listening


def server_context() -> ssl.SSLContext:
    """Return the context of a TLS server that has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def present(context: ssl.SSLContext, material: Material) -> None:
    """Let *context* serve this certificate from the next handshake on; open connections stay.

    To be called where handshakes are made, in between two of them.
    """
    pem = x509.written([material.certificate]) + x509.written_key(material.key)
    with _as_file(pem) as path:
        context.load_cert_chain(path)


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    # Python takes a key from files only; this one is in memory, and the root file system may be
    # read-only.
    number = os.memfd_create("temper-certificate", os.MFD_CLOEXEC)
    try:
        os.write(number, data)
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)


class Listener(uvicorn.Server):
    """A uvicorn server on one socket that sleeps until it is told to stop."""

    def __init__(self, app: ASGIApp, context: ssl.SSLContext | None = None) -> None:
        config = uvicorn.Config(
            app,
            ws="none",
            lifespan="off",
            interface="asgi3",
            http="h11",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            log_config=None,
            log_level=logging.ERROR,
            access_log=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S,
        )
        config.load()
        config.ssl = context
        super().__init__(config)
        self._told = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever started both servers."""
        yield

    async def main_loop(self) -> None:
        """Serve until ``tell_to_stop``; uvicorn itself would look ten times a second."""
        await self.on_tick(0)
        await self._told.wait()

    def tell_to_stop(self) -> None:
        """End ``serve`` once the requests in progress are answered."""
        self.should_exit = True
        self._told.set()
