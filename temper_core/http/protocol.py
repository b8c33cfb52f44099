"""uvicorn's HTTP, made to wait for nobody for ever."""

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from temper_core.http.bounds import Bounds

_WHY_REFUSED = b'{"error":"what came is no HTTP/1.1 request"}'
_OF_REFUSALS = [
    (b"content-type", b"application/json"),
    (b"content-length", b"%d" % len(_WHY_REFUSED)),
    (b"connection", b"close"),
]


_CONNECTION = "temper.connection"
_CREDENTIALS = struct.Struct("iII")
"""``struct ucred``: process, user and group (unix(7))."""


def connection_of(scope: Mapping[str, Any]) -> "BoundedProtocol":
    """Return the connection over which the request of an ASGI *scope* came."""
    connection: BoundedProtocol = scope["state"][_CONNECTION]
    return connection


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 that hangs up on whoever takes too long.

    uvicorn itself waits without end for a client that sends its headers slowly, or that does not
    read. A client that drips its head wins no time by that.
    """

    silent_since = 0.0
    is_gone = False
    _due = 0.0
    _timer: asyncio.TimerHandle | None = None
    _was_idle = True
    _is_resting = False

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        app_state: dict[str, Any],
        bounds: Bounds,
        on_made: Callable[["BoundedProtocol"], None],
    ) -> None:
        super().__init__(config, state, {**app_state, _CONNECTION: self})
        self._bounds = bounds
        self._on_made = on_made

    @property
    def is_idle(self) -> bool:
        """Whether no request is being read or answered. One whose head is not whole is none.

        A connection that only waits for its last words to be read is idle too.
        """
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    @property
    def is_owed(self) -> bool:
        """Whether the client is waited for: to send the rest of a request, or to read answers."""
        return not self.is_idle and (self.cycle.more_body or self.flow.write_paused)

    @property
    def peer_uid(self) -> int | None:
        """The user at the other end of a local socket; None over TCP."""
        peer = self.transport.get_extra_info("socket")
        if peer is None or peer.family != socket.AF_UNIX:
            return None
        try:
            told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:  # it has gone
            return None
        uid: int = _CREDENTIALS.unpack(told)[1]
        return uid

    def extend(self, within_s: float) -> None:
        """Wait so long from now on for what is being done, in place of ``exchange_s``."""
        if not self.is_gone:
            self._rearm(within_s)

    def hang_up(self) -> None:
        """Close at once, whatever is unsent."""
        self.is_gone = True
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._rearm(self._bounds.head_s)
        self._on_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        # After a reset uvicorn's timer would keep all that the connection had, until it goes off.
        self._unset_keepalive_if_required()
        self._stop_timer()
        self.is_gone, self.app_state = True, {}  # that has this very connection

    def data_received(self, data: bytes) -> None:
        """Give a head its time from its first byte on, and a request once its head is whole."""
        super().data_received(data)
        if self._was_idle and not self.is_idle:
            self._rearm(self._bounds.exchange_s)
        elif self._is_resting:
            self._rearm(self._bounds.head_s)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words say less
        """Refuse what the parser could not take, in JSON, and hang up."""
        if self.is_idle or not self.cycle.response_started:
            headers = [*self.server_state.default_headers, *_OF_REFUSALS]
            lines = [b"HTTP/1.1 400 Bad Request", *(b"%s: %s" % header for header in headers)]
            self.transport.write(b"\r\n".join([*lines, b"", _WHY_REFUSED]))
        self.transport.close()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if not self.is_idle:  # the next was sent along with it
            self._rearm(self._bounds.exchange_s)
        elif self.conn.trailing_data[0]:  # and that has begun
            self._rearm(self._bounds.head_s)
        else:
            self._rearm(self._bounds.rest_s)
            self._is_resting = True

    def _rearm(self, within_s: float) -> None:
        self._was_idle, self._is_resting = self.is_idle, False
        self.silent_since = self.loop.time()
        self._due = self.silent_since + within_s
        # One that goes off too early looks again: new timers would cost each request some 10 us.
        if self._timer is None or self._timer.when() > self._due:
            self._stop_timer()
            self._timer = self.loop.call_at(self._due, self._look, self._due)

    def _look(self, expected: float) -> None:
        if expected >= self._due:
            self.hang_up()
        else:
            self._timer = self.loop.call_at(self._due, self._look, self._due)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
