"""The threads that answer: a few per lane, with a bounded queue."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, TypeVar

from attrs import field, frozen

from temper_core.errors import MachineError
from temper_core.server.table import Lane

Answered = TypeVar("Answered")

MOST_WAITING = 64
MOST_OF_NETWORK = 24
"""Calls for the clients of one network, so that it leaves room to others."""
MOST_WITHDRAWN = 1024
"""Withdrawn calls, which keep a small entry in the executor's queue until a thread is free."""
MOST_WITHDRAWN_OF_NETWORK = 256


class _Call(Generic[Answered]):
    """A call that runs once, or was withdrawn before and returns None."""

    def __init__(self, call: Callable[[], Answered]) -> None:
        self._pending = [call]  # pop is atomic, so that one thread gets the call

    def __call__(self) -> Answered | None:
        try:
            call = self._pending.pop()
        except IndexError:
            return None
        return call()

    def withdraw(self) -> bool:
        """Return whether the call was not begun, and never will be."""
        with suppress(IndexError):
            self._pending.pop()
            return True
        return False


@frozen
class _Pool:
    """The threads of one lane, which start on demand, and their pending calls."""

    threads: ThreadPoolExecutor
    calls: dict[Future[Any], str] = field(factory=dict)
    """The pending calls, each with the network of its client, empty on a local socket."""
    withdrawn: dict[Future[Any], str] = field(factory=dict)
    """The withdrawn calls that the executor still has, with the same."""

    def is_full(self, network: str) -> bool:
        """Whether no call for a client of *network* can be added."""
        waiting, withdrawn = list(self.calls.values()), list(self.withdrawn.values())
        if len(waiting) >= MOST_WAITING or len(withdrawn) >= MOST_WITHDRAWN:
            return True
        is_share_used = (
            waiting.count(network) >= MOST_OF_NETWORK
            or withdrawn.count(network) >= MOST_WITHDRAWN_OF_NETWORK
        )
        return bool(network) and is_share_used

    def withdraw(self, future: Future[Any]) -> None:
        """Give the place of a withdrawn call to another."""
        self.withdrawn[future] = self.calls.pop(future, "")
        if future.done():
            self.forget(future)

    def forget(self, future: Future[Any]) -> None:
        self.calls.pop(future, None)
        self.withdrawn.pop(future, None)


class Lanes:
    """One small pool of threads per lane, so that a hanging plugin delays no probe.

    Used from one event loop.
    """

    def __init__(self) -> None:
        self._pools: dict[Lane, _Pool] = {}

    def start(self, lane: Lane) -> None:
        """Start a thread of *lane*, so that its calls work when no other thread can be started."""
        self._pool(lane).threads.submit(int)

    async def run(
        self,
        lane: Lane,
        call: Callable[[], Answered],
        network: str = "",
        leaving: Callable[[], Awaitable[None]] | None = None,
    ) -> Answered:
        """Run *call* in *lane* for a client of *network*, empty on a local socket.

        With *leaving*, which returns once the client has disconnected, a call that was not begun by
        then is withdrawn.
        Raises MachineError if the lane's queue is full, if it has no thread, or if the call was
        withdrawn.
        A lane without threads has no queue that could be full: its calls run in the event loop.
        """
        if not lane.workers:
            return call()
        pool = self._pool(lane)
        if pool.is_full(network):
            raise MachineError("too many requests of this kind are waiting; ask again later")
        once = _Call(call)
        future = _submitted(pool.threads, once)
        pool.calls[future] = network
        future.add_done_callback(pool.forget)
        answer = asyncio.wrap_future(future)
        try:
            if leaving is not None and len(pool.calls) > lane.workers:
                await _first_of(answer, leaving())
                if not answer.done() and once.withdraw():
                    pool.withdraw(future)
                    raise MachineError("the client disconnected before its turn")
            return await answer  # type: ignore[return-value]  # None only if withdrawn
        except asyncio.CancelledError as error:
            answer.cancel()
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


async def _first_of(answer: asyncio.Future[Any], leaving: Awaitable[None]) -> None:
    """Wait for the answer, or for the client to leave."""
    left = asyncio.ensure_future(leaving)
    try:
        await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        left.cancel()
        with suppress(asyncio.CancelledError):
            await left


def _submitted(threads: ThreadPoolExecutor, call: _Call[Answered]) -> "Future[Answered | None]":
    """Submit *call*. Raise MachineError if no thread can be started.

    The executor queues a call before it starts a thread for it, and would run it with the next one.
    """
    try:
        return threads.submit(call)
    except RuntimeError as error:
        call.withdraw()
        raise MachineError(f"no thread can answer: {error}; nothing was done") from error
