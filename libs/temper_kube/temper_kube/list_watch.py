"""List and watch: a thread that keeps a follower up to date with a collection of the API server.

Protocol: Kubernetes' "Efficient detection of changes": a list gives a version, a watch continues
from it, bookmarks advance it without changes, and 410 Gone requires another list.
"""

import math
import random
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import structlog
from attrs import frozen

from temper_core import MachineError
from temper_kube.access import Access
from temper_kube.backoff import Backoff
from temper_kube.connection import Connection
from temper_kube.failures import GONE, GoneError, RefusalError
from temper_kube.list_pages import Json, ListDeadline, list_objects, version_of, with_query
from temper_kube.watch_status import WatchStatus

QUIET_S = 90.0
"""Bookmarks come every minute: a watch without data for so long is dead, even if TCP is not."""
SHORTEST_WATCH_S, LONGEST_WATCH_S = 240, 480
"""The server ends a watch after a random time between these, which spreads a cluster's clients."""
LATE_S = 30.0
"""A watch that the server has not ended so long after its time is left."""
EARLY_S, SPREAD_S = 1.0, 3.0
"""A server that ends ends the watches of all clients at once. Their lists come within SPREAD_S."""
STEADY_S = 5.0
"""After a watch that lasted so long, the waits start again with the shortest."""
CLOSE_S = 3.0
FROM_CACHE, NEWEST = "0", ""
"""Versions of a list: any that the server has in its cache, and the one in its storage."""
FIRST_SERVER_ERROR = 500
TOO_LARGE_VERSION = "Too large resource version"
"""Of the refusal of a list. The status alone may be that of a gateway."""
JSON = "application/json"
CHANGES = ("ADDED", "MODIFIED", "DELETED")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Follower(Protocol):
    """The receiver of a collection's changes. It is called on the watching thread."""

    def replaced(self, items: Iterable[Json]) -> None:
        """Replace all objects with *items*.

        *items* are requested page by page during the iteration, which may raise MachineError.
        """
        ...

    def changed(self, kind: str, item: Json) -> None:
        """Record that *item* was ADDED, MODIFIED or DELETED."""
        ...

    def status_changed(self) -> None:
        """Record that the watch began or ended."""
        ...


@frozen
class Query:
    """The watched collection, and a field selector.

    *metadata_only* requests only the metadata of objects, which every supported server can send.
    *page* bounds the objects of one answer to a list. 0 requests all of them at once from the
    server's cache, which has no pages.
    """

    path: str
    fields: str = ""
    metadata_only: bool = False
    page: int = 0

    def accepts(self, kind: str) -> str:
        """Return the accepted media types. *kind* is the kind of the metadata objects."""
        return (
            f"application/json;as={kind};g=meta.k8s.io;v=v1,{JSON}" if self.metadata_only else JSON
        )

    def listing(self, version: str) -> dict[str, str]:
        """Return a list's parameters. The list is not older than *version*."""
        if self.page:
            return {**self._selected, "limit": str(self.page)}
        return {**self._selected, **({"resourceVersion": version} if version else {})}

    def watching(self, version: str, seconds: int) -> dict[str, str]:
        """Return the parameters of a watch that continues from *version* for *seconds*."""
        return {
            **self._selected,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }

    @property
    def _selected(self) -> dict[str, str]:
        return {"fieldSelector": self.fields} if self.fields else {}


class ListWatch:
    """Runs from ``start`` to ``close``. It never raises, and retries until it is closed.

    A lost watch is logged once, at the first failure after it was up. With *logs_each_reason* each
    new reason of a failed retry or first attempt is logged too.
    """

    def __init__(
        self,
        access: Access,
        query: Query,
        follower: Follower,
        status: WatchStatus,
        backoff: Backoff | None = None,
        *,
        logs_each_reason: bool = False,
    ) -> None:
        self._access = access
        self._query = query
        self._follower = follower
        self._status = status
        self._backoff = backoff or Backoff()
        self._version = ""
        self._list_from = FROM_CACHE
        self._logs_each_reason = logs_each_reason
        self._logged_reason = ""
        self._is_loss_unlogged = False
        self._connection: Connection | None = None
        self._began_at = math.inf
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"watch-{status.resource}", daemon=True
        )

    def start(self) -> None:
        """Begin. Returns at once."""
        self._thread.start()

    def close(self) -> None:
        """End the watch. Waits at most CLOSE_S for the thread."""
        self._closing.set()
        if self._connection is not None:
            self._connection.abort()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                wait_s = self._turn()
            except Exception as error:  # a bug here must not end the watch
                log.exception("watch_failed", resource=self._status.resource)
                self._doubt_version()  # the same event would fail forever
                wait_s = self._ended(f"the watch failed: {error!r}", is_news=False)
            self._closing.wait(wait_s)
        self._status.ended("it was closed")

    def _turn(self) -> float:
        """List if needed, and watch to the end. Return the seconds to wait then."""
        try:
            with Connection(self._access, QUIET_S) as self._connection:
                if self._closing.is_set():  # close() came before there was a connection to abort
                    return 0.0
                if not self._version:
                    self._list(self._connection)
                is_whole = self._watch(self._connection)
        except GoneError as error:
            # The cache may be as old as that version: request the newest.
            self._version, self._list_from = "", NEWEST
            return self._ended(str(error), is_news=False)
        except RefusalError as error:
            if TOO_LARGE_VERSION in error.message and not self._version:
                self._list_from = NEWEST
                self._backoff.forget()  # the server answers again, so a long wait is not needed
            elif error.status >= FIRST_SERVER_ERROR:
                self._doubt_version()
            return self._ended(str(error), error.retry_after_s)
        except MachineError as error:
            self._doubt_version()
            return self._ended(str(error))
        if not is_whole:  # a server that ends, or a proxy before it
            self._doubt_version()
        self._status.ended("the watch ended, and continues")
        if not self._was_steady():
            return self._backoff.failed()
        return 0.0 if is_whole else random.uniform(0.0, SPREAD_S)  # noqa: S311 - spreads load

    def _doubt_version(self) -> None:
        """List again before the next watch, and nothing older than what was seen.

        The server's storage may have been restored from a backup meanwhile. The server accepts a
        watch from a version that it has not reached yet, and omits all events before that version.
        A list from such a version is refused.
        """
        self._list_from = self._version or self._list_from
        self._version = ""

    def _list(self, connection: Connection) -> None:
        accept = self._query.accepts("PartialObjectMetadataList")
        rest: dict[str, Any] = {}
        deadline = ListDeadline()

        def request(path: str, rest: dict[str, Any]) -> Iterator[Json]:
            return connection.items(path, rest, accept=accept, limit_s=deadline.left_s())

        parameters = self._query.listing(self._list_from)
        self._follower.replaced(list_objects(request, self._query.path, parameters, rest))
        self._version = version_of(rest)
        self._status.listed()
        self._list_from = FROM_CACHE

    def _watch(self, connection: Connection) -> bool:
        """Watch until the server ends it. Return whether it lasted as long as requested."""
        seconds = random.randint(SHORTEST_WATCH_S, LONGEST_WATCH_S)  # noqa: S311 - spreads load
        path = with_query(self._query.path, self._query.watching(self._version, seconds))
        accept = self._query.accepts("PartialObjectMetadata")
        ends_at = time.monotonic() + seconds
        for event in connection.stream(path, accept=accept, begun=self._began):
            self._note(event)
            if self._closing.is_set() or time.monotonic() > ends_at + LATE_S:
                break
        return time.monotonic() >= ends_at - EARLY_S

    def _began(self) -> None:
        """Record that the server accepted the watch: from now on it sends every change."""
        self._began_at = time.monotonic()
        self._logged_reason = ""
        self._status.began()
        self._is_loss_unlogged |= self._status.is_up
        self._follower.status_changed()

    def _note(self, event: Json) -> None:
        was_up = self._status.is_up
        self._status.heard()
        self._is_loss_unlogged = True
        if not was_up:
            self._follower.status_changed()
        kind, item = event.get("type"), event.get("object")
        if not isinstance(item, dict):
            return
        if kind == "ERROR":
            raise _refusal(item)
        if kind in CHANGES:
            self._follower.changed(str(kind), item)
        self._version = version_of(item) or self._version

    def _ended(self, reason: str, at_least_s: float = 0.0, *, is_news: bool = True) -> float:
        """Record why the watch ended. Return the seconds to wait."""
        self._status.ended(reason)
        if self._closing.is_set():
            return 0.0
        self._was_steady()
        is_new = self._logs_each_reason and reason != self._logged_reason
        if is_news and (self._is_loss_unlogged or is_new):
            self._is_loss_unlogged, self._logged_reason = False, reason
            log.warning("watch_lost", resource=self._status.resource, reason=reason)
        self._follower.status_changed()
        return self._backoff.failed(at_least_s)

    def _was_steady(self) -> bool:
        """Whether the ended watch lasted for STEADY_S. If so, reset the backoff."""
        lasted_s, self._began_at = time.monotonic() - self._began_at, math.inf
        if lasted_s >= STEADY_S:
            self._backoff.forget()
        return lasted_s >= STEADY_S


def _refusal(status: Json) -> RefusalError:
    """Return the error for the Status object of an ERROR event."""
    code, message = status.get("code"), str(status.get("message", ""))[:300]
    if code == GONE:
        return GoneError(message)
    details = status.get("details")
    after = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return RefusalError(
        code if isinstance(code, int) else 500, message, after if isinstance(after, int) else 0.0
    )
