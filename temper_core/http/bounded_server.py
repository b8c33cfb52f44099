"""uvicorn's server, made to bound its connections, its waiting and its stop."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from temper_core.errors import MachineError
from temper_core.http.accepting import Acceptor
from temper_core.http.bounds import Bounds
from temper_core.http.protocol import BoundedProtocol

LARGEST_HEADERS_BYTES = 16 * 1024
"""Of headers that come in pieces; what an application refuses besides is its own."""


class BoundedServer(uvicorn.Server):
    """Serves *app* within *bounds*, by TLS where there is a *context*.

    It leaves signals alone, and sleeps until it is told to stop; uvicorn itself looks ten times a
    second. *headers* are part of every answer. uvicorn logs nothing but bugs.
    """

    def __init__(
        self,
        app: ASGIApp,
        bounds: Bounds,
        *,
        context: ssl.SSLContext | None = None,
        headers: Sequence[tuple[str, str]] = (),
        has_lifespan: bool = False,
    ) -> None:
        super().__init__(_configure(app, bounds, headers, has_lifespan=has_lifespan))
        self._bounds = bounds
        self._context = context
        self._begun = asyncio.Event()
        self._told = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept from *sockets*, which listen already; MachineError where the application fails."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise MachineError("the HTTP server's application did not start")
        connections = cast("set[BoundedProtocol]", self.server_state.connections)
        make = partial(
            BoundedProtocol, self.config, self.server_state, self.lifespan.state, self._bounds
        )
        acceptors = [
            Acceptor(each, make, connections, self._bounds, self._context) for each in sockets or ()
        ]
        for acceptor in acceptors:
            acceptor.start()
        # All that uvicorn does with its servers is to close them.
        self.servers = cast("list[asyncio.Server]", acceptors)
        self.started = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever started it."""
        yield

    async def main_loop(self) -> None:
        """Serve until ``tell_to_stop``."""
        await self.on_tick(0)
        self._begun.set()
        await self._told.wait()

    async def wait_begun(self) -> None:
        """Wait until it answers."""
        await self._begun.wait()

    def tell_to_stop(self) -> None:
        """End ``serve`` once what is in progress is answered; called in the server's own loop."""
        # uvicorn would complain about requests that do not end, which is for who answers them.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self.should_exit = True
        self._told.set()


def _configure(
    app: ASGIApp, bounds: Bounds, headers: Sequence[tuple[str, str]], *, has_lifespan: bool
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="on" if has_lifespan else "off",
        interface="asgi3",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        headers=[*headers],
        log_config=None,
        log_level=logging.ERROR,
        access_log=False,
        h11_max_incomplete_event_size=LARGEST_HEADERS_BYTES,
        timeout_keep_alive=bounds.rest_s,
        timeout_graceful_shutdown=bounds.stop_s,
    )
