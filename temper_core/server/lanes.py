"""The threads that answer: a few per lane, with a bounded queue."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from attrs import field, frozen

from temper_core.errors import MachineError
from temper_core.server.table import Lane

Answered = TypeVar("Answered")

MOST_WAITING = 64


@frozen
class _Pool:
    """The threads of one lane, which start on demand, and their pending calls."""

    threads: ThreadPoolExecutor
    calls: set[Future[Any]] = field(factory=set)


class Lanes:
    """One small pool of threads per lane, so that a hanging plugin delays no probe.

    Used from one event loop.
    """

    def __init__(self) -> None:
        self._pools: dict[Lane, _Pool] = {}

    async def run(self, lane: Lane, call: Callable[[], Answered]) -> Answered:
        """Run *call* in *lane*. Raise MachineError if the lane's queue is full.

        A lane without threads has no queue that could be full: its calls run in the event loop.
        """
        if not lane.workers:
            return call()
        pool = self._pool(lane)
        if len(pool.calls) >= MOST_WAITING:
            raise MachineError("too many requests of this kind are waiting; ask again later")
        future = pool.threads.submit(call)
        pool.calls.add(future)
        future.add_done_callback(pool.calls.discard)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError as error:
            raise MachineError("the agent is stopping") from error

    def close(self) -> None:
        """End the threads. A busy thread ends with its call, at the latest at its deadline."""
        for pool in self._pools.values():
            is_idle = all(future.done() for future in tuple(pool.calls))
            pool.threads.shutdown(wait=is_idle, cancel_futures=True)

    def _pool(self, lane: Lane) -> _Pool:
        if lane not in self._pools:
            prefix = f"temper-http-{lane.name}"
            self._pools[lane] = _Pool(ThreadPoolExecutor(lane.workers, thread_name_prefix=prefix))
        return self._pools[lane]
