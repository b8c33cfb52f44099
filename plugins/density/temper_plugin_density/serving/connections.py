"""An HTTP server whose connections nobody can take up: whoever says nothing makes room.

The ports are open to every pod of a cluster. uvicorn waits for the head of a request for ever, and
refuses everybody's requests once there are too many connections.
"""

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from attrs import frozen
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from temper_plugin_density.serving.accepting import Acceptor

if TYPE_CHECKING:
    from asyncio import TimerHandle, Transport

KEEP_ALIVE_S = 120
"""Longer than clients in Go keep an idle connection (90 s): none writes into a closed one."""
STOP_S = 5


@frozen
class Patience:
    """How long a connection may take to say what it wants, and how many may be at once."""

    handshake_s: float = 10.0
    head_s: float = 10.0
    most_handshakes: int = 128
    most_connections: int = 384


PATIENCE = Patience()


class Connection(H11Protocol):
    """A connection that is closed where no request comes in time, or where others need its room."""

    def __init__(self, server: "Listener") -> None:
        super().__init__(server.config, server.server_state, server.lifespan.state)
        self._patience = server.patience
        self._overdue: TimerHandle | None = None
        self.heard_at = 0.0

    def connection_made(self, transport: "Transport") -> None:  # type: ignore[override]  # as uvicorn's
        """Wait for a first request; of too many connections the one that idles longest ends."""
        super().connection_made(transport)
        self.heard_at = self.loop.time()
        self._expect_head()
        if len(self.connections) > self._patience.most_connections:
            known = [each for each in self.connections if isinstance(each, Connection)]
            min(known, key=Connection.standing).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what came; it is a whole head, or the rest of one has to come in time."""
        self.heard_at = self.loop.time()
        super().data_received(data)
        if self.is_asked:
            self._stop_waiting()
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def is_asked(self) -> bool:
        """Whether a request is waiting for its answer."""
        # uvicorn has none before the first request, which its types do not say.
        return bool(self.cycle) and not self.cycle.response_complete

    def standing(self) -> tuple[bool, float]:
        """Return how far it is from having to make room: the least first."""
        return self.is_asked, self.heard_at

    def _expect_head(self) -> None:
        # Not begun anew with every byte: they would only have to drip.
        if self._overdue is None:
            self._overdue = self.loop.call_later(self._patience.head_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None


class Listener(uvicorn.Server):
    """A server on one socket that sleeps until it is told to stop, and leaves signals alone."""

    def __init__(
        self,
        app: ASGIApp,
        context: ssl.SSLContext | None = None,
        *,
        has_lifespan: bool = False,
        patience: Patience = PATIENCE,
    ) -> None:
        config = uvicorn.Config(
            app,
            ws="none",
            lifespan="on" if has_lifespan else "off",
            interface="asgi3",
            http=Connection,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            log_config=None,
            log_level=logging.ERROR,
            access_log=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S,
        )
        config.load()
        super().__init__(config)
        self.patience = patience
        self._context = context
        self._told = asyncio.Event()
        self._accepting: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections; uvicorn itself would let any number shake hands for a minute."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(1)
        self.servers = []
        acceptor = Acceptor(
            partial(Connection, self),
            self._context,
            self.patience.handshake_s,
            self.patience.most_handshakes,
        )
        self._accepting = [asyncio.create_task(acceptor.run(each)) for each in sockets or ()]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and end once what is in progress is answered."""
        for each in self._accepting:
            each.cancel()
        await asyncio.wait(self._accepting)
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever started it."""
        yield

    async def main_loop(self) -> None:
        """Serve until ``tell_to_stop``; uvicorn itself would look ten times a second."""
        await self.on_tick(0)
        await self._told.wait()

    def tell_to_stop(self) -> None:
        """End ``serve`` once the requests in progress are answered."""
        self.should_exit = True
        self._told.set()
