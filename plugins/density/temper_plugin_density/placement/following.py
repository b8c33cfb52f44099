"""List and watch: a task that keeps somebody up to date with the API server, whatever happens.

A list gives a version, and a watch goes on from it. A watch that ends goes on where it was; 410
Gone asks for another list; anything else for another try, a while later.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

import httpx2
import structlog
from attrs import define
from lightkube import ApiError
from lightkube.core.async_client import AsyncClient
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import (
    GenericGlobalResource,
    GenericNamespacedResource,
    create_api_info,
)
from lightkube.operators import BinaryOperator, SequenceOperator, not_equal, not_in

GONE = 410
QUIET_S = 90.0
"""A watch that is silent for so long may be dead without anybody knowing: it is begun anew."""
SHORTEST_WATCH_S, LONGEST_WATCH_S = 240, 480
RISE_S = 1.0
"""The client does not say that the server took a watch, but where it does not, that comes soon."""
PAGE = 500
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
STEADY_S = 5.0
"""After a watch that lasted so long, the waits begin with the shortest again."""

Item = Mapping[str, Any]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Nodes(GenericGlobalResource):
    """Node objects as plain tables: of some 20 KiB each, few fields are read."""

    _api_info = create_api_info("", "v1", "Node", "nodes")


class Pods(GenericNamespacedResource):
    """Pod objects as plain tables."""

    _api_info = create_api_info("", "v1", "Pod", "pods")


BOUND_AND_ALIVE: dict[str, str | BinaryOperator | SequenceOperator] = {
    "spec.nodeName": not_equal(""),
    "status.phase": not_in(["Failed", "Succeeded"]),
}
SELECTED: Mapping[type[Any], Mapping[str, Any]] = {
    Nodes: {},
    Pods: {"namespace": "*", "fields": BOUND_AND_ALIVE},
}
"""What of a collection is asked for: pods that have a node, and may still want its CPUs."""


class Follower(Protocol):
    """Whoever is kept up to date."""

    def read(self, item: Item) -> Any:  # noqa: ANN401 - whatever it understands
        """Return what matters of an object, None where nothing does: objects are large."""
        ...

    def replaced(self, read: Sequence[Any]) -> None:
        """Know that this is what was read of all there are."""
        ...

    def changed(self, kind: str, item: Item) -> None:
        """Know that *item* was ADDED, MODIFIED or DELETED."""
        ...


@define
class Lookout:
    """How the following of one collection fares."""

    resource: str
    is_up: bool = False
    has_listed: bool = False
    lists: int = 0
    restarts: int = 0
    reason: str = "not asked yet"


class Following:
    """Follows one collection until it is cancelled; never raises, and never gives up."""

    def __init__(
        self,
        client: AsyncClient,
        resource: type[Any],
        follower: Follower,
        lookout: Lookout,
        *,
        quiet_s: float = QUIET_S,
    ) -> None:
        self._quiet_s = quiet_s
        self._client = client
        self._resource = resource
        self._follower = follower
        self._lookout = lookout
        self._version = ""
        self._failures = 0
        self._lists_now = False

    async def run(self) -> None:
        """List, watch, and begin again for as long as nobody cancels it."""
        while True:
            began_at = asyncio.get_running_loop().time()
            try:
                await self._turn()
                continue  # it was silent, and goes on by another connection
            except (httpx2.HTTPError, OSError, ConfigError) as error:
                reason = self._note_failure(error)
            except Exception as error:  # whatever it is: a bug here must not end the watch
                log.exception("watch_failed", resource=self._lookout.resource)
                self._version, reason = "", repr(error)
            lasted_s = asyncio.get_running_loop().time() - began_at
            await asyncio.sleep(self._fell(reason, lasted_s))

    async def _turn(self) -> None:
        self._lists_now = not self._version
        if self._lists_now:
            await self._list()
        events = self._client.watch(
            self._resource,
            server_timeout=random.randint(SHORTEST_WATCH_S, LONGEST_WATCH_S),  # noqa: S311 - spreads load
            resource_version=self._version,
            **SELECTED[self._resource],
        )
        rising = asyncio.get_running_loop().call_later(RISE_S, self._rose)
        try:
            await self._hear(aiter(events))
        finally:
            rising.cancel()

    async def _list(self) -> None:
        found = self._client.list(self._resource, chunk_size=PAGE, **SELECTED[self._resource])
        self._follower.replaced(
            [read async for item in found if (read := self._follower.read(item)) is not None]
        )
        self._version = found.resourceVersion
        self._lookout.has_listed = True
        self._lookout.lists += 1

    async def _hear(self, events: AsyncIterator[tuple[str, Item]]) -> None:
        """Take note of events until there are none for too long."""
        while True:
            silence = asyncio.timeout(self._quiet_s)
            try:
                # Not wait_for: until Python 3.12 it may swallow a cancellation.
                async with silence:
                    kind, item = await anext(events)
            except TimeoutError:
                if silence.expired():
                    return
                raise
            self._rose()
            self._follower.changed(kind, item)
            self._version = str(item["metadata"]["resourceVersion"])

    def _note_failure(self, error: Exception) -> str:
        if _code_of(error) == GONE:
            self._version = ""
            if not self._lists_now:
                # A server that was away is back: nothing is to be spared by waiting any longer.
                self._failures = 0
        return " ".join(str(error).split()) or type(error).__name__

    def _rose(self) -> None:
        self._lookout.is_up, self._lookout.reason = True, ""

    def _fell(self, reason: str, lasted_s: float) -> float:
        """Note why it is down; return how long to wait before the next try."""
        if reason != self._lookout.reason:
            log.warning("watch_lost", resource=self._lookout.resource, reason=reason)
        self._lookout.is_up, self._lookout.reason = False, reason
        self._lookout.restarts += 1
        self._failures = 0 if lasted_s >= STEADY_S else self._failures + 1
        doubled = FIRST_WAIT_S * 2.0 ** min(self._failures, 16)
        return min(doubled, LONGEST_WAIT_S) * random.uniform(0.5, 1)  # noqa: S311 - spreads load


def _code_of(error: Exception) -> int | None:
    if isinstance(error, ApiError):
        return error.status.code
    return error.response.status_code if isinstance(error, httpx2.HTTPStatusError) else None
