"""Reads the bodies of requests. The size of each, their total and the time are bounded."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import define, field

from temper_core.server.http_request import HttpRequest, Refusal

DEADLINE_S = 10.0
MOST_IN_ALL_BYTES = 32 * 1024 * 1024
"""Limit on the sum of all bodies that one listener holds at a time."""
TIMED_OUT = 408
TOO_LARGE = 413
UNAVAILABLE = 503


@define(eq=False)
class BodyBudget:
    """The bytes of the bodies that one listener holds. Used from one event loop."""

    held_bytes: int = field(default=0, init=False)

    @asynccontextmanager
    async def read(self, http: HttpRequest, most: int) -> AsyncIterator[bytes]:
        """Read the body of *http*, at most *most* bytes, and count it as held inside the context.

        Raises Refusal if it is too large, arrives too late, or too many bytes are held.
        """
        held = bytearray()
        try:
            await self._in_time(held, http, most)
            yield bytes(held)
        finally:
            self.held_bytes -= len(held)

    async def _in_time(self, held: bytearray, http: HttpRequest, most: int) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                await self._fill(held, http, most)
        except TimeoutError as error:
            message = f"the body did not arrive within {DEADLINE_S:.0f} s"
            raise Refusal(TIMED_OUT, message) from error

    async def _fill(self, held: bytearray, http: HttpRequest, most: int) -> None:
        announced = http.header("content-length")
        if len(announced) > len(str(most)) or int(announced or 0) > most:
            raise Refusal(TOO_LARGE, f"the body is larger than {most} bytes")
        async for chunk in http.body():
            held += chunk
            self.held_bytes += len(chunk)
            if len(held) > most:
                raise Refusal(TOO_LARGE, f"the body is larger than {most} bytes")
            if self.held_bytes > MOST_IN_ALL_BYTES:
                raise Refusal(UNAVAILABLE, "too many large bodies arrive; send it later")
