"""Accepts connections within bounds, so that no number of callers exhausts files or memory."""

import asyncio
import socket
import ssl
from collections.abc import Callable

from attrs import define, field

from temper_core.http.admission import Admission
from temper_core.http.client_network import client_network, oldest_of_the_most
from temper_core.http.protocol import BoundedProtocol
from temper_core.http.rate_limited_log import RateLimitedLog

MOST_AT_ONCE = 16
PAUSE_S = 0.1
"""Short, so that a queue of dead connections is soon taken where few descriptors are free."""


@define(eq=False)
class Acceptor:
    """Accepts from *listener*.

    With too many TLS handshakes one of the network that has the most is cancelled, its oldest, so
    that silent clients block no others. A connection is made, and its admission begins, once its
    handshake is done. asyncio's own accepting has no bounds, and floods the log when descriptors
    run out.
    """

    listener: socket.socket
    make_protocol: Callable[[Admission], BoundedProtocol]
    admission: Admission
    context: ssl.SSLContext | None = None
    _named: str = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop, init=False)
    _arriving: dict[asyncio.Task[None], str] = field(factory=dict, init=False)
    """The handshakes, the oldest first, with the network of each client."""
    _given_up: set[asyncio.Task[None]] = field(factory=set, init=False)
    _resumption: asyncio.TimerHandle | None = field(default=None, init=False)
    _log: RateLimitedLog = field(factory=RateLimitedLog, init=False)

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
                connection, address = self.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self._admit(connection, address)

    def _pause(self, error: OSError) -> None:
        # The listener stays readable while no descriptor is free, so pause instead of spinning.
        reason = error.strerror or str(error)
        self._log.warn("connections_not_accepted", listener=self._named, reason=reason)
        self._loop.remove_reader(self.listener)
        self._resumption = self._loop.call_later(PAUSE_S, self.start)

    def _admit(self, connection: socket.socket, address: object) -> None:
        making = self._loop.create_task(self._connect(connection))
        self._arriving[making] = _network_of(address)
        making.add_done_callback(self._arrived)
        # Without TLS there is no handshake to wait for.
        if self.context is not None and len(self._arriving) > self.admission.bounds.most_shaking:
            self._give_up(oldest_of_the_most(self._arriving))

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self.make_protocol(self.admission),
                connection,
                ssl=self.context,
                ssl_handshake_timeout=self.admission.bounds.handshake_s if self.context else None,
            )
        except OSError as error:  # clients that speak no TLS or disconnect are not logged
            _forget_frames(error)

    def _arrived(self, making: asyncio.Task[None]) -> None:
        self._arriving.pop(making, None)
        self._given_up.discard(making)

    def _give_up(self, making: asyncio.Task[None]) -> None:
        del self._arriving[making]
        self._given_up.add(making)
        # A task cancelled before it runs would never close its socket, so cancel it later.
        self._loop.call_soon(making.cancel)


def _network_of(address: object) -> str:
    """Return the network of what accept(2) gives as the client, empty for a local socket."""
    return client_network(str(address[0])) if isinstance(address, tuple) else ""


def _forget_frames(error: BaseException | None) -> None:
    """Release what the failed handshake of *error* holds, some 256 KiB, at once.

    The frames of asyncio's handshake (sslproto.py) refer to the error, and its traceback to them.
    Without this each failed handshake would stay in memory until the garbage collector comes by.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
