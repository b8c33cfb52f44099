"""uvicorn's HTTP, made to wait for nobody for ever."""

import asyncio
import logging
from typing import Any, ClassVar, cast

import uvicorn
from attrs import frozen
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from temper_core import __version__

LARGEST_HEADERS_BYTES = 16 * 1024
KEEP_ALIVE_S = 75
"""How long a connection may rest after an answer: longer than scrapes usually are apart, since a
new one costs half as much as the scrape itself."""
STOP_S = 1
HEADERS = [
    ("server", f"temper/{__version__}"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
]
_WHY_REFUSED = '{"error":"what came is no HTTP/1.1 request"}'
_REFUSAL_HEADERS = [
    *HEADERS,
    ("content-type", "application/json"),
    ("content-length", str(len(_WHY_REFUSED))),
    ("connection", "close"),
]
_REFUSAL = "\r\n".join(
    [
        "HTTP/1.1 400 Bad Request",
        *(f"{name}: {value}" for name, value in _REFUSAL_HEADERS),
        "",
        _WHY_REFUSED,
    ]
).encode()


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
    _is_resting = False

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
        self._rearm(self.timing.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    def data_received(self, data: bytes) -> None:
        """Give a head its time from its first byte on, and a request once its head is whole."""
        if self._is_resting:
            self._rearm(self.timing.head_s)
        super().data_received(data)
        if self._was_idle and not self.is_idle:
            self._rearm(self.timing.exchange_s)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words say less
        """Refuse what the parser could not take, in JSON as every error, and hang up."""
        if self.is_idle or not self.cycle.response_started:
            self.transport.write(_REFUSAL)
        self.transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        if self.is_closing:
            return
        if not self.is_idle:  # the next was sent along with it
            self._rearm(self.timing.exchange_s)
        elif self.conn.trailing_data[0]:  # and that has begun
            self._rearm(self.timing.head_s)
        else:
            self._rearm(KEEP_ALIVE_S)
            self._is_resting = True

    def _rearm(self, within_s: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._was_idle, self._is_resting = self.is_idle, False
        self.idle_since = self.loop.time()
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
