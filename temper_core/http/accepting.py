"""Accepts connections within bounds, so that no number of callers exhausts files or memory."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

import structlog
from attrs import define, field

from temper_core.http.bounds import Bounds
from temper_core.http.protocol import BoundedProtocol

MOST_AT_ONCE = 16
PAUSE_S = 1.0
REPEAT_S = 60.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Made = Callable[[BoundedProtocol], None]


@define(eq=False)
class Acceptor:
    """Accepts from *listener*. ``open`` are the open connections of all acceptors.

    With too many TLS handshakes the oldest is cancelled, so that silent clients block no others. A
    connection counts as open once its handshake is done. With too many, the one idle for longest
    is closed, or else the one whose client has for longest sent no rest of its request or read no
    answer. If all wait for the server itself, the new connection is closed. asyncio's own
    accepting has no bounds, and floods the log when descriptors run out.
    """

    listener: socket.socket
    make_protocol: Callable[[Made], BoundedProtocol]
    open: set[BoundedProtocol]
    bounds: Bounds
    context: ssl.SSLContext | None = None
    _named: str = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop, init=False)
    _arriving: dict[asyncio.Task[None], None] = field(factory=dict, init=False)
    _given_up: set[asyncio.Task[None]] = field(factory=set, init=False)
    _resumption: asyncio.TimerHandle | None = field(default=None, init=False)
    _said_at: float | None = field(default=None, init=False)

    @_named.default
    def _name(self) -> str:
        return str(self.listener.getsockname())

    def start(self) -> None:
        """Begin to accept."""
        self.listener.setblocking(False)
        self._loop.add_reader(self.listener, self._accept_some)

    def close(self) -> None:
        """Stop accepting, and cancel running handshakes. Open connections stay open."""
        if self._resumption is not None:
            self._resumption.cancel()
        self._loop.remove_reader(self.listener)
        for making in tuple(self._arriving):
            self._give_up(making)

    async def wait_closed(self) -> None:
        """Wait for the end of cancelled handshakes."""
        if self._given_up:
            await asyncio.wait(self._given_up)

    def _accept_some(self) -> None:
        for _ in range(MOST_AT_ONCE):
            try:
                connection, _ = self.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self._admit(connection)

    def _pause(self, error: OSError) -> None:
        # The listener stays readable while no descriptor is free, so pause instead of spinning.
        self._say("connections_not_accepted", reason=error.strerror or str(error))
        self._loop.remove_reader(self.listener)
        self._resumption = self._loop.call_later(PAUSE_S, self.start)

    def _admit(self, connection: socket.socket) -> None:
        making = self._loop.create_task(self._connect(connection))
        self._arriving[making] = None
        making.add_done_callback(self._arrived)
        # Without TLS there is no handshake to wait for.
        if self.context is not None and len(self._arriving) > self.bounds.most_shaking:
            self._give_up(next(iter(self._arriving)))

    async def _connect(self, connection: socket.socket) -> None:
        # Clients that speak no TLS or disconnect are not logged.
        with suppress(OSError):
            await self._loop.connect_accepted_socket(
                lambda: self.make_protocol(self._make_room),
                connection,
                ssl=self.context,
                ssl_handshake_timeout=self.bounds.handshake_s if self.context else None,
            )

    def _arrived(self, making: asyncio.Task[None]) -> None:
        self._arriving.pop(making, None)
        self._given_up.discard(making)

    def _give_up(self, making: asyncio.Task[None]) -> None:
        del self._arriving[making]
        self._given_up.add(making)
        # A task cancelled before it runs would never close its socket, so cancel it later.
        self._loop.call_soon(making.cancel)

    def _make_room(self, newcomer: BoundedProtocol) -> None:
        present = [peer for peer in self.open if peer is not newcomer and not peer.is_gone]
        if len(present) < self.bounds.most_open:
            return
        silent = [peer for peer in present if peer.is_idle] or [
            peer for peer in present if peer.is_owed
        ]
        if silent:
            min(silent, key=lambda peer: peer.silent_since).hang_up()
            return
        newcomer.hang_up()
        self._say("connection_refused", reason="too many are open", limit=self.bounds.most_open)

    def _say(self, event: str, **facts: object) -> None:
        """Log at most once a minute, so that callers cannot fill the disk."""
        now = self._loop.time()
        if self._said_at is None or now - self._said_at >= REPEAT_S:
            self._said_at = now
            log.warning(event, listener=self._named, **facts)
