"""Rounds of the survey while a page is open, and the streams that announce them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import structlog

from temper_plugin_dashboard.fleet.survey import Survey

LOOKED_S = 60.0
"""Rounds go on for this time after the last request of a page."""
CLOSE_S = 5.0
HEARTBEAT_S = 15.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Rounds:
    """Takes a round of the survey every *every_s* seconds while a page is open."""

    def __init__(
        self, survey: Survey, every_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._survey = survey
        self._every_s = every_s
        self._clock = clock
        self._looked_at = -LOOKED_S
        self._wanted = asyncio.Event()
        self._done = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to wait for requests of a page."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End the rounds. One in progress goes on for ``CLOSE_S`` at most."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CLOSE_S)
        self._survey.close()

    def look(self) -> None:
        """Note a request of a page."""
        self._looked_at = self._clock()
        self._wanted.set()

    async def first(self) -> None:
        """Note a request, and wait for the first round if none has been taken yet."""
        self.look()
        async with self._done:
            await self._done.wait_for(lambda: self._survey.rounds > 0)

    async def each(self) -> AsyncIterator[bool]:
        """Yield True now and after each round, and False at least every ``HEARTBEAT_S``."""
        known = -1
        while True:
            self.look()
            number = self._survey.rounds
            yield number > known
            known = number
            try:
                async with asyncio.timeout(HEARTBEAT_S), self._done:
                    await self._done.wait_for(lambda: self._survey.rounds > known)  # noqa: B023 - called here
            except TimeoutError:
                continue

    async def _run(self) -> None:
        while True:
            await self._wanted.wait()
            if self._clock() - self._looked_at > LOOKED_S:
                self._wanted.clear()
                continue
            began = self._clock()
            try:
                await asyncio.to_thread(self._survey.take)
            except Exception:  # a bug must not end the rounds: the next one may succeed
                log.exception("round_failed")
            async with self._done:
                self._done.notify_all()
            await asyncio.sleep(max(0.0, self._every_s - (self._clock() - began)))
