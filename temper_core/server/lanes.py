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


class _Withdrawable:
    """A call that does nothing once it was withdrawn."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call: Callable[[], Any] | None = call

    def __call__(self) -> Any:  # noqa: ANN401 - what the call returns
        return self._call() if self._call is not None else None

    def withdraw(self) -> None:
        self._call = None


class Lanes:
    """One small pool of threads per lane, so that a hanging plugin delays no probe.

    Used from one event loop.
    """

    def __init__(self) -> None:
        self._pools: dict[Lane, _Pool] = {}

    def start(self, lane: Lane) -> None:
        """Start a thread of *lane*, so that its calls work when no other thread can be started."""
        self._pool(lane).threads.submit(int)

    async def run(self, lane: Lane, call: Callable[[], Answered]) -> Answered:
        """Run *call* in *lane*. Raise MachineError if the lane's queue is full or has no thread.

        A lane without threads has no queue that could be full: its calls run in the event loop.
        """
        if not lane.workers:
            return call()
        pool = self._pool(lane)
        if len(pool.calls) >= MOST_WAITING:
            raise MachineError("too many requests of this kind are waiting; ask again later")
        future = _submitted(pool.threads, call)
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


def _submitted(threads: ThreadPoolExecutor, call: Callable[[], Answered]) -> "Future[Answered]":
    """Submit *call*. Raise MachineError if no thread can be started.

    The executor queues a call before it starts a thread for it, and would run it with the next one.
    """
    waiting = _Withdrawable(call)
    try:
        return threads.submit(waiting)
    except RuntimeError as error:
        waiting.withdraw()
        raise MachineError(f"no thread can answer: {error}; nothing was done") from error
