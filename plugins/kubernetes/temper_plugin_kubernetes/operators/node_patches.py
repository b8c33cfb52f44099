"""Changes the annotations of many nodes, a few at a time."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from queue import LifoQueue
from typing import Self

from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_kube.failures import NotFoundError
from temper_plugin_kubernetes.node import NODES

AT_ONCE = 8
"""One by one, 5,000 nodes would take most of the three minutes that an uninstall has."""

Change = Mapping[str, str | None]


class NodePatches:
    """``AT_ONCE`` connections. Leaving it cancels the changes that have not begun."""

    def __init__(self, access: Access) -> None:
        self._servers = [ApiServer(access) for _ in range(AT_ONCE)]
        # The one that was used last: a few nodes need no further connection.
        self._idle: LifoQueue[ApiServer] = LifoQueue()
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        for server in self._servers:
            self._idle.put(self._closing.enter_context(server))
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._closing.close()

    def made(self, changes: Mapping[str, Change]) -> Iterator[Future[bool]]:
        """Yield for each node, in order, whether it still exists. A refusal is the exception.

        The first change is made alone: a right that is missing for it is missing for all.
        """
        nodes = iter(changes.items())
        for name, change in nodes:
            first = self._pool.submit(self._make, name, change)
            first.exception()
            yield first
            yield from [self._pool.submit(self._make, *each) for each in nodes]

    def _make(self, name: str, change: Change) -> bool:
        server = self._idle.get()
        try:
            server.patch(f"{NODES}/{name}", {"metadata": {"annotations": change}})
        except NotFoundError:
            return False
        finally:
            self._idle.put(server)
        return True
