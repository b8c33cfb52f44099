"""Turns in which costly requests are answered, dealt out fairly between networks of clients."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from attrs import define, field

from temper_core import client_network

MOST_QUESTIONS = 512
"""More than a server has places, of which a scheduler takes any number from one address."""


class BusyError(Exception):
    """Too many requests of this client, or of all, wait for their turn."""


@define(eq=False)
class Turns:
    """One turn at a time in one event loop, of each network after the other.

    After a turn all other tasks of the loop run, and no turn begins for *rest* times its duration.
    *most_waiting* and *most_of_client* bound the requests that wait, in all and of one network.
    """

    most_waiting: int = 512
    most_of_client: int = 32
    rest: float = 0.0
    _queues: dict[str, deque[asyncio.Future[None]]] = field(factory=dict, init=False)
    _is_taken: bool = field(default=False, init=False)

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Wait for the turn of *client*, an address. Raises BusyError."""
        if self._is_taken:
            await self._wait(client_network(client))
        self._is_taken = True
        began = time.monotonic()
        try:
            yield
        finally:
            rest_s = self.rest * (time.monotonic() - began)
            asyncio.get_running_loop().call_later(rest_s, self._pass_on)

    async def _wait(self, network: str) -> None:
        queue = self._queues.get(network, deque())
        waiting = sum(map(len, self._queues.values()))
        if len(queue) >= self.most_of_client or waiting >= self.most_waiting:
            raise BusyError("too many requests wait for an answer; ask again in a second")
        mine = asyncio.get_running_loop().create_future()
        queue.append(mine)
        self._queues[network] = queue
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the turn to the network that has waited longest since its last one."""
        while self._queues:
            network = next(iter(self._queues))
            queue = self._queues.pop(network)
            waiting = queue.popleft()
            if queue:
                self._queues[network] = queue
            if not waiting.done():
                waiting.set_result(None)
                return
        self._is_taken = False


@define(eq=False)
class QuestionTurns:
    """Turns of a scheduler's questions. Small ones and large ones do not wait for each other.

    A question belongs to its turn until it is answered. So one of each size is held as objects,
    which take up to 30 times the bytes of their text.
    """

    _small: Turns = field(factory=lambda: Turns(MOST_QUESTIONS, MOST_QUESTIONS), init=False)
    _large: Turns = field(factory=lambda: Turns(MOST_QUESTIONS, MOST_QUESTIONS), init=False)

    def turn(self, client: str, *, is_small: bool) -> AbstractAsyncContextManager[None]:
        """Wait for the turn of *client*, an address. Raises BusyError."""
        return (self._small if is_small else self._large).turn(client)
