"""uvicorn's server with bounds on its connections, its waits and its stop."""

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast

import uvicorn

from temper_core.errors import MachineError
from temper_core.http.accepting import Acceptor
from temper_core.http.admission import Admission
from temper_core.http.asgi import ASGIApp
from temper_core.http.bounds import Bounds
from temper_core.http.gate import Gate
from temper_core.http.protocol import LARGEST_HEAD_BYTES, BoundedProtocol

LAST_WORDS_S = 0.5
"""For cancelled requests to end after the stop."""

_NO_NEWS = {
    "socket.send() raised exception.",
    "SSL connection is closed",
    "Cancel %s running task(s), timeout graceful shutdown exceeded",
}


class BoundedServer(uvicorn.Server):
    """Serves *app* within *bounds*, by TLS if there is a *context*.

    It handles no signals, and sleeps until ``tell_to_stop``. Uvicorn itself wakes ten times a
    second. *headers* are part of every answer. *refused* is called for each request that gets no
    place. uvicorn and asyncio log only bugs.
    """

    def __init__(
        self,
        app: ASGIApp,
        bounds: Bounds,
        *,
        context: ssl.SSLContext | None = None,
        headers: Sequence[tuple[str, str]] = (),
        has_lifespan: bool = False,
        refused: Callable[[], object] = lambda: None,
    ) -> None:
        gate = Gate(app, bounds, refused)
        super().__init__(_configure(gate, bounds, headers, has_lifespan=has_lifespan))
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addFilter(_is_news)
        self._bounds = bounds
        self._context = context
        self._begun = asyncio.Event()
        self._stop = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve *sockets*, which listen already, until ``tell_to_stop``, then close connections.

        Raises MachineError if the application fails to start.
        """
        try:
            await super().serve(sockets)
        finally:
            self._begun.set()
            for connection in tuple(self.server_state.connections):
                cast("BoundedProtocol", connection).hang_up()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then accept."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise MachineError("the HTTP server's application did not start")
        make = partial(
            BoundedProtocol, self.config, self.server_state, self.lifespan.state, self._bounds
        )
        admission = Admission(self._bounds)
        acceptors = [
            Acceptor(listener, make, admission, self._context) for listener in sockets or ()
        ]
        for acceptor in acceptors:
            acceptor.start()
        # uvicorn only closes its servers.
        self.servers = cast("list[asyncio.Server]", acceptors)
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests in progress within ``stop_s``."""
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(tuple(self.server_state.tasks), timeout=LAST_WORDS_S)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield

    async def main_loop(self) -> None:
        """Serve until ``tell_to_stop``."""
        await self.on_tick(0)
        self._begun.set()
        try:
            await self._stop.wait()
        finally:
            # A cancellation stops the server too.
            for acceptor in self.servers:
                acceptor.close()

    async def wait_begun(self) -> None:
        """Wait until it serves. Raise MachineError if it ended before."""
        await self._begun.wait()
        if not self.started:
            raise MachineError("the HTTP server did not start")

    async def wait_stop(self) -> None:
        """Wait until ``tell_to_stop``."""
        await self._stop.wait()

    def tell_to_stop(self) -> None:
        """End ``serve`` once the requests in progress are answered. Call in its own loop."""
        self.should_exit = True
        self._stop.set()


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
        h11_max_incomplete_event_size=LARGEST_HEAD_BYTES,
        timeout_keep_alive=bounds.rest_s,
        timeout_graceful_shutdown=bounds.stop_s,
    )


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record is more than a client's disconnect or a request cancelled at the stop.

    Callers must not be able to fill the disk, and slow answers are the application's matter.
    """
    error = record.exc_info[1] if record.exc_info else None
    is_ending = isinstance(error, asyncio.CancelledError) or _is_disconnect(error)
    return record.msg not in _NO_NEWS and not is_ending


def _is_disconnect(error: BaseException | None) -> bool:
    """Whether an application of Starlette, which the agent's own is not, has lost its client."""
    starlette = sys.modules.get("starlette.requests")
    return starlette is not None and isinstance(error, starlette.ClientDisconnect)
