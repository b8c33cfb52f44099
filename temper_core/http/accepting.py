"""Accepts connections, within bounds, so that no number of callers uses up files or memory."""

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
    """Accepts from *listener*. ``open`` are the connections that are made, by all acceptors.

    Of too many TLS handshakes the oldest is given up, so that silence keeps nobody from theirs. A
    connection counts as open once hands are shaken. Of too many, the one that has asked nothing
    for longest makes room, or else the one that has for longest owed the rest of its request, or
    not read its answers. Where the server itself is what all wait for, the newcomer is closed.
    asyncio's own accepting has no bounds, and floods the log when descriptors run out.
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
        """Accept no more, and give up those that are just arriving. What is open stays so."""
        if self._resumption is not None:
            self._resumption.cancel()
        self._loop.remove_reader(self.listener)
        for making in tuple(self._arriving):
            self._give_up(making)

    async def wait_closed(self) -> None:
        """Wait for the end of those that were given up."""
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
        # The listener stays readable while there is no descriptor for who waits: do not spin.
        self._say("connections_not_accepted", reason=error.strerror or str(error))
        self._loop.remove_reader(self.listener)
        self._resumption = self._loop.call_later(PAUSE_S, self.start)

    def _admit(self, connection: socket.socket) -> None:
        making = self._loop.create_task(self._connect(connection))
        self._arriving[making] = None
        making.add_done_callback(self._arrived)
        # Without TLS all are made at once, and silence takes no time.
        if self.context is not None and len(self._arriving) > self.bounds.most_shaking:
            self._give_up(next(iter(self._arriving)))

    async def _connect(self, connection: socket.socket) -> None:
        # Whoever does not speak TLS, or goes away meanwhile, is no news.
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
        # A task that is cancelled before it runs would never close its socket: let it begin.
        self._loop.call_soon(making.cancel)

    def _make_room(self, newcomer: BoundedProtocol) -> None:
        others = [each for each in self.open if each is not newcomer and not each.is_gone]
        if len(others) < self.bounds.most_open:
            return
        silent = [each for each in others if each.is_idle] or [
            each for each in others if each.is_owed
        ]
        if silent:
            min(silent, key=lambda each: each.silent_since).hang_up()
            return
        newcomer.hang_up()
        self._say("connection_refused", reason="too many are open", limit=self.bounds.most_open)

    def _say(self, event: str, **facts: object) -> None:
        """Log, but at most once a minute: callers must not be able to fill the disk."""
        now = self._loop.time()
        if self._said_at is None or now - self._said_at >= REPEAT_S:
            self._said_at = now
            log.warning(event, listener=self._named, **facts)
