"""uvicorn, made to stop when told and to wait for nobody for ever."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from temper_core import __version__

LARGEST_HEADERS_BYTES = 16 * 1024
MOST_CONNECTIONS = 256
KEEP_ALIVE_S = 5
STOP_S = 1
HEADERS = [
    ("server", f"temper/{__version__}"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
]


def bounded_protocol(exchange_s: float) -> type[H11Protocol]:
    """Make the protocol that gives every request and its answer *exchange_s* seconds in all.

    uvicorn itself waits without end for a client that sends its headers slowly, or that does not
    read.
    """

    class BoundedProtocol(H11Protocol):
        """HTTP/1.1 that hangs up on whoever takes too long."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
            """Begin to wait for the first request."""
            super().connection_made(transport)
            self._rearm()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop waiting."""
            super().connection_lost(exc)
            if self._deadline is not None:
                self._deadline.cancel()

        def on_response_complete(self) -> None:
            """Begin to wait for the next request."""
            super().on_response_complete()
            self._rearm()

        def _rearm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            if self in self.connections:
                self._deadline = self.loop.call_later(exchange_s, self.transport.abort)

    return BoundedProtocol


def configure(app: Any, exchange_s: float) -> uvicorn.Config:  # noqa: ANN401 - an ASGI application
    """Set uvicorn up for *app*: no logs of its own but bugs, no WebSockets, small headers."""
    return uvicorn.Config(
        app,
        http=bounded_protocol(exchange_s),
        ws="none",
        lifespan="off",
        interface="asgi3",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        headers=HEADERS,
        log_config=None,
        log_level=logging.ERROR,
        access_log=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=LARGEST_HEADERS_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )


class StoppableServer(uvicorn.Server):
    """A uvicorn server that sleeps until it is told to stop; uvicorn itself looks all the time."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._told = asyncio.Event()

    async def main_loop(self) -> None:
        """Serve until ``tell_to_stop``."""
        await self.on_tick(0)
        self._on_started()
        await self._told.wait()

    def tell_to_stop(self) -> None:
        """End ``serve``; called in the server's own loop."""
        # uvicorn would complain about requests that do not end, which is for lanes to answer.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self.should_exit = True
        self._told.set()
