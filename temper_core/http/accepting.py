"""Accepts connections, within a bound, so that no number of callers uses up the agent's files."""

import asyncio
import socket
from collections.abc import Callable

import structlog
from attrs import define, field

from temper_core.http.protocol import BoundedProtocol

MOST_AT_ONCE = 16
PAUSE_S = 1.0
REPEAT_S = 60.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define(eq=False)
class Acceptor:
    """Accepts from *listener*, at most *most_open* connections at a time; ``open`` are those made.

    Beyond the bound the connection that has asked nothing for longest makes room, and the newcomer
    is closed where all are being answered. asyncio's own accepting has no bound, and floods the log
    when descriptors run out.
    """

    listener: socket.socket
    make_protocol: Callable[[], BoundedProtocol]
    open: set[BoundedProtocol]
    most_open: int
    _loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop, init=False)
    _arriving: dict[asyncio.Task[object], BoundedProtocol] = field(factory=dict, init=False)
    _resumption: asyncio.TimerHandle | None = field(default=None, init=False)
    _said_at: float | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin to accept."""
        self.listener.setblocking(False)
        self._loop.add_reader(self.listener, self._accept_some)

    def close(self) -> None:
        """Accept no more; connections that are open stay so."""
        if self._resumption is not None:
            self._resumption.cancel()
        self._loop.remove_reader(self.listener)

    async def wait_closed(self) -> None:
        """Wait for the connections that were just being made."""
        if self._arriving:
            await asyncio.wait(self._arriving)

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
        if not self._has_room():
            connection.close()
            self._say("connection_refused", reason="too many are open", limit=self.most_open)
            return
        protocol = self.make_protocol()
        making = self._loop.create_task(self._connect(protocol, connection))
        self._arriving[making] = protocol
        making.add_done_callback(self._arriving.pop)

    async def _connect(self, protocol: BoundedProtocol, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:
            connection.close()

    def _has_room(self) -> bool:
        made = {protocol for protocol in self.open if not protocol.is_closing}
        if len(made.union(self._arriving.values())) < self.most_open:
            return True
        idle = [protocol for protocol in made if protocol.is_idle]
        if not idle:
            return False
        min(idle, key=lambda protocol: protocol.idle_since).hang_up()
        return True

    def _say(self, event: str, **facts: object) -> None:
        """Log, but at most once a minute: callers must not be able to fill the disk."""
        now = self._loop.time()
        if self._said_at is None or now - self._said_at >= REPEAT_S:
            self._said_at = now
            log.warning(event, listener=str(self.listener.getsockname()), **facts)
