"""uvicorn's HTTP protocol with a deadline on every wait."""

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from temper_core.http.admission import Admission
from temper_core.http.bounds import Bounds
from temper_core.http.client_network import client_network

LARGEST_HEAD_BYTES = 16 * 1024
"""Of a head that arrives in pieces. An application may refuse more."""
HEAD_TOO_LARGE = 431
LINGER_S = 1.0
"""For a refused client to read the refusal. To close while its bytes arrive would discard it
(RFC 9112, 9.6)."""
_CONNECTION = "temper.connection"
_CREDENTIALS = struct.Struct("iII")
"""``struct ucred``: process, user and group (unix(7))."""


def connection_of(scope: Mapping[str, Any]) -> "BoundedProtocol":
    """Return the connection of an ASGI *scope*."""
    connection: BoundedProtocol = scope["state"][_CONNECTION]
    return connection


def extend_exchange(scope: Mapping[str, Any], within_s: float) -> None:
    """Allow the exchange of an ASGI *scope* *within_s* from now on, in place of ``exchange_s``.

    An application calls it before each piece of a streamed answer. It does nothing for a scope that
    no ``BoundedServer`` made.
    """
    connection = scope.get("state", {}).get(_CONNECTION)
    if connection is not None:
        connection.extend(within_s)


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 that closes the connection of a client that takes too long.

    uvicorn itself waits without end for a client that sends its headers slowly or that does not
    read. Here a head sent byte by byte gets no extra time.
    """

    silent_since = 0.0
    is_gone = False
    network = ""
    """The network that the client is counted by, empty for a local socket."""
    _due = 0.0
    _timer: asyncio.TimerHandle | None = None
    _was_idle = True
    _is_resting = False
    _is_refused = False

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        app_state: dict[str, Any],
        bounds: Bounds,
        admission: Admission,
    ) -> None:
        super().__init__(config, state, {**app_state, _CONNECTION: self})
        self._bounds = bounds
        self.admission = admission

    @property
    def is_idle(self) -> bool:
        """Whether no request is being read or answered. A request with a partial head is none.

        A connection that only waits for its last answer to be read is idle too.
        """
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    @property
    def is_owed(self) -> bool:
        """Whether the server waits for the client to send the rest of a request or to read."""
        return not self.is_idle and (self.cycle.more_body or self.flow.write_paused)

    @property
    def peer_uid(self) -> int | None:
        """The user id of the peer of a local socket, None over TCP."""
        peer = self.transport.get_extra_info("socket")
        if peer is None or peer.family != socket.AF_UNIX:
            return None
        try:
            credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:  # the peer has disconnected
            return None
        uid: int = _CREDENTIALS.unpack(credentials)[1]
        return uid

    def extend(self, within_s: float) -> None:
        """Allow the current exchange *within_s* from now on, in place of ``exchange_s``."""
        if not self.is_gone:
            self._rearm(within_s)

    def hang_up(self) -> None:
        """Close at once, and drop unsent data."""
        self.is_gone = True
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.network = client_network(self.client[0]) if self.client else ""
        self._rearm(self._bounds.head_s)
        self.admission.arrive(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        # After a reset uvicorn's timer would keep the connection's objects until it fires.
        self._unset_keepalive_if_required()
        self._stop_timer()
        self.is_gone, self.app_state = True, {}  # app_state refers to this connection
        self.admission.leave(self)

    def data_received(self, data: bytes) -> None:
        """Start the time of a head at its first byte, of a request once its head is complete."""
        if self._is_refused:
            return
        super().data_received(data)
        if self._was_idle and not self.is_idle:
            self._rearm(self._bounds.exchange_s)
        elif self._is_resting:
            self._rearm(self._bounds.head_s)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's message has less detail
        """Answer a request that the parser refused, in JSON, and close the connection.

        uvicorn calls this where it handles the parser's error, which has the status to answer with.
        """
        if not self.is_idle:
            if not self.cycle.response_started:
                self._refuse(b"400 Bad Request", "not a valid HTTP/1.1 request")
            self.transport.close()
            return
        if getattr(sys.exc_info()[1], "error_status_hint", None) == HEAD_TOO_LARGE:
            why = f"path, query and headers are larger than {LARGEST_HEAD_BYTES} bytes"
            self._refuse(b"431 Request Header Fields Too Large", why)
        else:
            self._refuse(b"400 Bad Request", "not a valid HTTP/1.1 request")
        self._linger()

    def _refuse(self, status: bytes, why: str) -> None:
        content = json.dumps({"error": why}).encode()
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(content)),
            (b"connection", b"close"),
        ]
        lines = [b"HTTP/1.1 " + status, *(b"%s: %s" % header for header in headers)]
        self.transport.write(b"\r\n".join([*lines, b"", content]))

    def _linger(self) -> None:
        """Close for writing, and discard what still arrives, for at most ``LINGER_S``."""
        if not self.transport.can_write_eof():  # TLS
            self.transport.close()
            return
        self._is_refused = True
        with suppress(OSError):  # the client has reset the connection at the refusal
            self.transport.write_eof()
        self._rearm(LINGER_S)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        if self.transport.is_closing() or self._is_refused:
            return
        if not self.is_idle:  # the client sent the next request with this one
            self._rearm(self._bounds.exchange_s)
        elif self.conn.trailing_data[0]:  # the next request has begun
            self._rearm(self._bounds.head_s)
        else:
            self._rearm(self._bounds.rest_s)
            self._is_resting = True
        # An answer that is not sent yet would be cut short if its connection made room.
        if not self.transport.get_write_buffer_size():
            self.admission.settle()

    def _rearm(self, within_s: float) -> None:
        self._was_idle, self._is_resting = self.is_idle, False
        self.silent_since = self.loop.time()
        self._due = self.silent_since + within_s
        # A timer that fires too early rearms: new timers would cost each request some 10 us.
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
