"""Reads bodies of requests within bounds of size and time, per request and in total."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import define, field, frozen
from starlette.requests import ClientDisconnect, Request

from temper_core import client_network
from temper_serving.clients import address_of

WITHIN_S = 10.0
SMALL_BYTES = 64 * 1024
"""Bytes of a connection that do not count towards the total. Nearly all bodies are smaller."""
MOST_HELD_BYTES = 24 * 1024 * 1024
TOO_SLOW, TOO_LARGE, TOO_MANY = 408, 413, 503
FULL = "too many large bodies at once"


@frozen
class RefusedBodyError(Exception):
    """A body that is not read to its end, with the HTTP status of the refusal."""

    status: int
    reason: str

    def __str__(self) -> str:
        """Return the reason."""
        return self.reason


@define(eq=False)
class _Body:
    """A body that is held, and the timeout of its reading while it is read."""

    network: str
    content: bytearray = field(factory=bytearray)
    held_bytes: int = 0
    reading: asyncio.Timeout | None = None
    is_given_up: bool = False

    @property
    def counted_bytes(self) -> int:
        return max(0, self.held_bytes - SMALL_BYTES)

    @property
    def is_read(self) -> bool:
        """Whether it counts, and is still read."""
        return self.reading is not None and self.counted_bytes > 0

    def take(self, chunk: bytes) -> None:
        self.content += chunk
        self.held_bytes = len(self.content)

    def give_up(self) -> None:
        """Free its memory, and have its reading end now."""
        self.is_given_up = True
        self.content.clear()
        self.held_bytes = 0
        if self.reading is not None and not self.reading.expired():
            self.reading.reschedule(asyncio.get_running_loop().time())


@define(eq=False)
class BodyBudget:
    """Reads bodies of at most ``most_bytes``, with one bound for all that are held.

    Where the bound is reached, the largest body that is still read from the network that holds the
    most is given up. So slow bodies of one client keep no other client out. A body that is whole
    is never given up.
    """

    most_bytes: int
    within_s: float = WITHIN_S
    most_held_bytes: int = MOST_HELD_BYTES
    _bodies: list[_Body] = field(factory=list, init=False)

    @property
    def held_bytes(self) -> int:
        """Bytes held now, beyond SMALL_BYTES of each body."""
        return sum(body.counted_bytes for body in self._bodies)

    async def read(self, request: Request) -> bytes:
        """Return the body. Raise RefusedBodyError, after which the connection must end."""
        async with self.held(request) as body:
            return body

    @asynccontextmanager
    async def held(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body, which counts towards the total until the block ends. Raise as ``read``.

        For a body that waits for its turn after it is read.
        """
        body = _Body(client_network(address_of(request)))
        self._bodies.append(body)
        try:
            await self._fill(body, request)
            content = bytes(body.content)
            body.content.clear()
            yield content
        finally:
            self._bodies.remove(body)

    async def _fill(self, body: _Body, request: Request) -> None:
        try:
            async with asyncio.timeout(self.within_s) as body.reading:
                async for chunk in request.stream():
                    self._take(body, chunk)
                if body.is_given_up:
                    raise RefusedBodyError(TOO_MANY, FULL)
        except (TimeoutError, ClientDisconnect) as error:
            if body.is_given_up:
                raise RefusedBodyError(TOO_MANY, FULL) from error
            reason = f"the body did not come within {self.within_s:g} s"
            raise RefusedBodyError(TOO_SLOW, reason) from error
        finally:
            body.reading = None

    def _take(self, body: _Body, chunk: bytes) -> None:
        body.take(chunk)
        if body.held_bytes > self.most_bytes:
            raise RefusedBodyError(TOO_LARGE, f"the body is larger than {self.most_bytes} bytes")
        while body.counted_bytes and self.held_bytes > self.most_held_bytes:
            given_up = self._largest_of_the_most(body)
            if given_up is None or given_up is body:
                raise RefusedBodyError(TOO_MANY, FULL)
            given_up.give_up()

    def _largest_of_the_most(self, newest: _Body) -> _Body | None:
        """Return the largest body that is read from the network that holds the most.

        *newest* is the one of its network, whatever its size, and its network that of a tie.
        """
        by_network: Counter[str] = Counter()
        for body in self._bodies:
            by_network[body.network] += body.counted_bytes
        most = max(by_network, key=lambda one: (by_network[one], one == newest.network))
        if most == newest.network:
            return newest
        read = [body for body in self._bodies if body.network == most and body.is_read]
        return max(read, key=lambda body: body.held_bytes, default=None)
