"""Accepts connections, a bounded number of which may be shaking hands.

asyncio's own server sets no bound, and a connection in its TLS handshake, which may say nothing for
as long as it likes, takes some 200 KiB.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

import structlog
from attrs import define, field

REST_S = 0.5
"""Between two tries where none can be accepted, as without a free file descriptor."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class Acceptor:
    """Makes a connection by ``connect`` of whatever arrives, once hands are shaken."""

    connect: Callable[[], asyncio.Protocol]
    context: ssl.SSLContext | None
    handshake_s: float
    most_handshakes: int
    _shaking: dict[asyncio.Task[None], None] = field(factory=dict, init=False)

    async def run(self, listening: socket.socket) -> None:
        """Accept until it is cancelled; of too many handshakes the oldest is given up."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as error:
                log.warning("connection_not_accepted", reason=error.strerror or str(error))
                await asyncio.sleep(REST_S)
                continue
            task = loop.create_task(self._shake(accepted))
            self._shaking[task] = None
            task.add_done_callback(self._shook)
            if len(self._shaking) > self.most_handshakes:
                self._give_up_oldest()
            # What is waiting already is accepted without a pause, and nobody else has a turn.
            await asyncio.sleep(0)

    def _give_up_oldest(self) -> None:
        oldest = next(iter(self._shaking))
        del self._shaking[oldest]
        oldest.cancel()

    def _shook(self, task: asyncio.Task[None]) -> None:
        self._shaking.pop(task, None)

    async def _shake(self, accepted: socket.socket) -> None:
        # Whoever does not speak TLS, or goes away meanwhile, is no news.
        with suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self.connect,
                accepted,
                ssl=self.context,
                ssl_handshake_timeout=self.handshake_s if self.context else None,
            )
