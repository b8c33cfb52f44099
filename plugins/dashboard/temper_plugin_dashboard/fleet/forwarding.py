"""Requests of pages of nodes that agents answer, on threads that nothing else needs.

An agent that was taken over may answer slowly, and with as much as it is allowed to. Each node has
a share of the threads, so that it delays its own page alone.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from temper_core import MachineError
from temper_kube.agents import Agent
from temper_kube.connection import Content
from temper_plugin_dashboard.fleet.asking import AgentDoor, AgentRefusalError
from temper_plugin_dashboard.fleet.measures import Cause

AT_ONCE = 8
"""Answers of up to 16 MiB each are read at a time."""
OF_NODE = 2


class Forwarding:
    """Asks agents by *door*, ``AT_ONCE`` at a time, and of these ``OF_NODE`` of one node.

    It calls *failed* for each request without an answer.
    """

    def __init__(self, door: AgentDoor, failed: Callable[[Cause], None]) -> None:
        self._door = door
        self._failed = failed
        self._pool = ThreadPoolExecutor(AT_ONCE, "forwarded")
        self._places: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(OF_NODE)
        )

    async def ask(self, agent: Agent, path: str) -> Content:
        """Return the agent's answer to GET *path*. Raises the errors of ``AgentDoor.ask``."""
        async with self._places[agent.node]:
            loop = asyncio.get_running_loop()
            try:
                return await loop.run_in_executor(self._pool, self._door.ask, agent, path)
            except AgentRefusalError:
                self._failed(Cause.REFUSED)
                raise
            except MachineError:
                self._failed(Cause.NO_ANSWER)
                raise

    def close(self) -> None:
        """Begin no further answer. Those under way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
