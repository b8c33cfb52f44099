"""The threads that answer: a few per lane, and a bound on who waits for them."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from temper_core.errors import MachineError
from temper_core.server.table import Lane

Answered = TypeVar("Answered")

WORKERS: Mapping[Lane, int] = {Lane.PROBES: 1, Lane.CORE: 2, Lane.METRICS: 2, Lane.PLUGINS: 4}
MOST_WAITING = 64


class Lanes:
    """One small pool of threads per lane, so that a plugin that hangs delays no probe."""

    def __init__(self) -> None:
        self._pools = {
            lane: ThreadPoolExecutor(workers, thread_name_prefix=f"temper-http-{lane}")
            for lane, workers in WORKERS.items()
        }
        self._calls: dict[Lane, set[Future[Any]]] = {lane: set() for lane in WORKERS}

    async def run(self, lane: Lane, call: Callable[[], Answered]) -> Answered:
        """Run *call* in *lane*; raise MachineError where too many wait there already."""
        calls = self._calls[lane]
        if len(calls) >= MOST_WAITING:
            raise MachineError("too many requests of this kind are waiting; ask again later")
        future = self._pools[lane].submit(call)
        calls.add(future)
        future.add_done_callback(calls.discard)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError as error:
            raise MachineError("the agent is stopping") from error

    def close(self) -> None:
        """End the threads; one that is in a call ends with it, at the latest at its deadline."""
        for lane, pool in self._pools.items():
            is_idle = all(future.done() for future in tuple(self._calls[lane]))
            pool.shutdown(wait=is_idle, cancel_futures=True)
