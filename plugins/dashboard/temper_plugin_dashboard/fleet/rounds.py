"""Rounds of the survey while somebody looks, and the streams that tell of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import structlog

from temper_plugin_dashboard.fleet.survey import Survey

LOOKED_S = 60.0
"""Agents are asked for so long after the last request for what they say."""
CLOSE_S = 5.0
HEARTBEAT_S = 15.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Rounds:
    """Takes a round of the survey every *every_s* seconds while somebody looks."""

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
        """Begin to wait for somebody who looks."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End the rounds. One in progress goes on for ``CLOSE_S`` at most."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=CLOSE_S)
        self._survey.close()

    def look(self) -> None:
        """Note that somebody looks."""
        self._looked_at = self._clock()
        self._wanted.set()

    async def first(self) -> None:
        """Look, and wait for the first round if none has been taken yet."""
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
            except Exception:
                log.exception("round_failed")
            async with self._done:
                self._done.notify_all()
            await asyncio.sleep(max(0.0, self._every_s - (self._clock() - began)))
