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
MOST_OF_NETWORK = 24
"""Calls for the clients of one network, so that it leaves room to others."""


@frozen
class _Pool:
    """The threads of one lane, which start on demand, and their pending calls."""

    threads: ThreadPoolExecutor
    calls: dict[Future[Any], str] = field(factory=dict)
    """The pending calls, each with the network of its client, empty on a local socket."""

    def is_full(self, network: str) -> bool:
        """Whether no call for a client of *network* can be added."""
        networks = list(self.calls.values())
        is_share_used = network and networks.count(network) >= MOST_OF_NETWORK
        return len(networks) >= MOST_WAITING or bool(is_share_used)


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

    async def run(self, lane: Lane, call: Callable[[], Answered], network: str = "") -> Answered:
        """Run *call* in *lane* for a client of *network*, empty on a local socket.

        Raises MachineError if the lane's queue is full, or if it has no thread.
        A lane without threads has no queue that could be full: its calls run in the event loop.
        """
        if not lane.workers:
            return call()
        pool = self._pool(lane)
        if pool.is_full(network):
            raise MachineError("too many requests of this kind are waiting; ask again later")
        future = _submitted(pool.threads, call)
        pool.calls[future] = network
        future.add_done_callback(lambda done: pool.calls.pop(done, None))
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
