"""Turns in which decisions are explained, so that the scheduler's questions come in between."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import define, field

from temper_core import client_network

MOST_WAITING = 16
MOST_OF_CLIENT = 4
"""Explanations that wait, in all and for the clients of one network."""
REST = 4.0
"""After an explanation none begins for this many times its duration. One takes some 10 ms of the
event loop, which answers the scheduler and probes too."""


class BusyError(Exception):
    """Too many explanations wait already."""


@define(eq=False)
class ExplainingTurns:
    """One explanation at a time. Used from one event loop."""

    _turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _waiting: Counter[str] = field(factory=Counter, init=False)
    _free_at: float = field(default=0.0, init=False)

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Wait until a decision may be explained to *client*, an address. Raises BusyError."""
        network = client_network(client)
        if self._waiting.total() >= MOST_WAITING or self._waiting[network] >= MOST_OF_CLIENT:
            raise BusyError("too many explanations were asked for; ask again in a second")
        self._waiting[network] += 1
        try:
            async with self._turn:
                await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
                began = time.monotonic()
                try:
                    yield
                finally:
                    ended = time.monotonic()
                    self._free_at = ended + REST * (ended - began)
        finally:
            self._waiting[network] -= 1
            if not self._waiting[network]:
                del self._waiting[network]
