"""Reads bodies of requests within bounds of size and time, per request and in total."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import define, field, frozen
from starlette.requests import ClientDisconnect, Request

WITHIN_S = 10.0
SMALL_BYTES = 64 * 1024
"""Bytes of a connection that do not count towards the total. Nearly all bodies are smaller."""
MOST_HELD_BYTES = 24 * 1024 * 1024
TOO_SLOW, TOO_LARGE, TOO_MANY = 408, 413, 503


@frozen
class RefusedBodyError(Exception):
    """A body that is not read to its end, with the HTTP status of the refusal."""

    status: int
    reason: str

    def __str__(self) -> str:
        """Return the reason."""
        return self.reason


@define
class BodyBudget:
    """Reads bodies of at most ``most_bytes``, with one bound for all bodies in progress."""

    most_bytes: int
    within_s: float = WITHIN_S
    most_held_bytes: int = MOST_HELD_BYTES
    held_bytes: int = field(default=0, init=False)
    """Bytes held now, beyond SMALL_BYTES of each body."""

    async def read(self, request: Request) -> bytes:
        """Return the body. Raise RefusedBodyError, after which the connection must end."""
        async with self.held(request) as body:
            return body

    @asynccontextmanager
    async def held(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body, which counts towards the total until the block ends. Raise as ``read``.

        For a body that waits for its turn after it is read.
        """
        body = bytearray()
        try:
            await self._fill(body, request)
            content, size = bytes(body), _beyond_small(body)
        except BaseException:
            self.held_bytes -= _beyond_small(body)
            raise
        body.clear()
        try:
            yield content
        finally:
            self.held_bytes -= size

    async def _fill(self, body: bytearray, request: Request) -> None:
        try:
            async with asyncio.timeout(self.within_s):
                async for chunk in request.stream():
                    self._take(body, chunk)
        except (TimeoutError, ClientDisconnect) as error:
            reason = f"the body did not come within {self.within_s:g} s"
            raise RefusedBodyError(TOO_SLOW, reason) from error

    def _take(self, body: bytearray, chunk: bytes) -> None:
        before = _beyond_small(body)
        body += chunk
        self.held_bytes += _beyond_small(body) - before
        if len(body) > self.most_bytes:
            raise RefusedBodyError(TOO_LARGE, f"the body is larger than {self.most_bytes} bytes")
        if self.held_bytes > self.most_held_bytes and len(body) > SMALL_BYTES:
            raise RefusedBodyError(TOO_MANY, "too many large bodies at once")


def _beyond_small(body: bytearray) -> int:
    return max(0, len(body) - SMALL_BYTES)
