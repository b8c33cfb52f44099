"""uvicorn's HTTP, made to wait for nobody for ever."""

import asyncio
import logging
from typing import Any, ClassVar, cast

import uvicorn
from attrs import frozen
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from temper_core import __version__

LARGEST_HEADERS_BYTES = 16 * 1024
KEEP_ALIVE_S = 5
STOP_S = 1
HEADERS = [
    ("server", f"temper/{__version__}"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
]


@frozen
class Timing:
    """How many seconds a request's head may take to come, and a request with its answer."""

    head_s: float
    exchange_s: float


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 that hangs up on whoever takes too long.

    uvicorn itself waits without end for a client that sends its headers slowly, or that does not
    read.
    """

    timing: ClassVar[Timing]
    idle_since = 0.0
    _deadline: asyncio.TimerHandle | None = None
    _was_idle = True

    @property
    def is_idle(self) -> bool:
        """Whether no request is being read or answered; one whose head is not whole is none."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    @property
    def is_closing(self) -> bool:
        """Whether this side has hung up."""
        return self.transport.is_closing()

    def hang_up(self) -> None:
        """Close at once, whatever is unsent."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._rearm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def data_received(self, data: bytes) -> None:
        """Give a request its time once its head is whole."""
        super().data_received(data)
        if self._was_idle and not self.is_idle:
            self._rearm()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        if not self.is_closing:
            self._rearm()

    def _rearm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._was_idle = self.is_idle
        self.idle_since = self.loop.time()
        within_s = self.timing.head_s if self._was_idle else self.timing.exchange_s
        self._deadline = self.loop.call_later(within_s, self.hang_up)


def bounded_protocol(given: Timing) -> type[BoundedProtocol]:
    """Make the protocol that keeps to *given*; uvicorn wants a class."""

    class TimedProtocol(BoundedProtocol):
        """The protocol of one server."""

        timing = given

    return TimedProtocol


def configure(app: Any, timing: Timing) -> uvicorn.Config:  # noqa: ANN401 - an ASGI application
    """Set uvicorn up for *app*: no logs of its own but bugs, no WebSockets, small headers."""
    return uvicorn.Config(
        app,
        http=bounded_protocol(timing),
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
        h11_max_incomplete_event_size=LARGEST_HEADERS_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )
