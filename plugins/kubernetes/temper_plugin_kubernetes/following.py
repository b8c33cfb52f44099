"""List and watch: a thread that keeps somebody up to date with the API server, whatever happens.

Protocol: Kubernetes' "Efficient detection of changes": a list gives a version, a watch goes on
from it, bookmarks move it on where nothing changes, 410 Gone asks for another list.
"""

import math
import random
import threading
import time
from collections.abc import Iterable
from typing import Any, Protocol
from urllib.parse import urlencode

import structlog
from attrs import frozen

from temper_plugin_kubernetes.access import Access
from temper_plugin_kubernetes.accounts import Lookout
from temper_plugin_kubernetes.backoff import Backoff
from temper_plugin_kubernetes.connection import Connection, Json
from temper_plugin_kubernetes.failures import GONE, AwayError, GoneError, RefusalError

QUIET_S = 90.0
"""Bookmarks come every minute: a watch that is silent for so long is dead, whatever TCP says."""
SHORTEST_WATCH_S, LONGEST_WATCH_S = 240, 480
"""The server ends a watch after a time between these, which spreads a cluster's nodes."""
STEADY_S = 5.0
"""A watch that lasted so long was a good one: after it, the waits begin with the shortest again."""
CLOSE_S = 3.0
FROM_CACHE = "0"
JSON = "application/json"
CHANGES = ("ADDED", "MODIFIED", "DELETED")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Follower(Protocol):
    """Whoever is kept up to date; called on the watching thread."""

    def replaced(self, items: Iterable[Json]) -> None:
        """Know that these are all there are; they may end in an error, and then nothing is known.

        The items come from the server while they are iterated over, to the end.
        """
        ...

    def changed(self, kind: str, item: Json) -> None:
        """Know that *item* was ADDED, MODIFIED or DELETED."""
        ...

    def wavered(self) -> None:
        """Know that the watch went up or down."""
        ...


@frozen
class Query:
    """What is watched: a collection, and the fields that objects must have.

    Of objects *metadata_only* is sent where the server can do that, as all that are in use can.
    """

    path: str
    fields: str = ""
    metadata_only: bool = False

    def accepts(self, kind: str) -> str:
        """Return the media types to ask for; *kind* is what the metadata comes in."""
        return (
            f"application/json;as={kind};g=meta.k8s.io;v=v1,{JSON}" if self.metadata_only else JSON
        )

    def listing(self, version: str) -> str:
        """Return a list's path; *version* "" is the newest, "0" what the server has cached."""
        return self._with({"resourceVersion": version} if version else {})

    def watching(self, version: str, seconds: int) -> str:
        """Return the path of a watch that goes on from *version*, and ends after *seconds*."""
        return self._with(
            {
                "watch": "1",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": str(seconds),
            }
        )

    def _with(self, parameters: dict[str, str]) -> str:
        fields = {"fieldSelector": self.fields} if self.fields else {}
        return f"{self.path}?{urlencode({**fields, **parameters})}"


class Following:
    """Runs from ``start`` to ``close``; never raises, and never gives up."""

    def __init__(
        self,
        access: Access,
        query: Query,
        follower: Follower,
        lookout: Lookout,
        backoff: Backoff | None = None,
    ) -> None:
        self._access = access
        self._query = query
        self._follower = follower
        self._lookout = lookout
        self._backoff = backoff or Backoff()
        self._version = ""
        self._list_from = FROM_CACHE
        self._connection: Connection | None = None
        self._rose_at = math.inf
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"watch-{lookout.resource}", daemon=True
        )

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """End the watch, and wait for the thread for a moment."""
        self._closing.set()
        if self._connection is not None:
            self._connection.abort()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                wait_s = self._turn()
            except Exception as error:  # whatever it is: a bug here must not end the watch
                log.exception("watch_failed", resource=self._lookout.resource)
                wait_s = self._fell(f"the watch failed: {error!r}")
            self._closing.wait(wait_s)
        self._lookout.fell("it was closed")

    def _turn(self) -> float:
        """List where that is called for, and watch to the end; return how long to rest then."""
        try:
            with Connection(self._access, QUIET_S) as self._connection:
                if self._closing.is_set():  # before it could be aborted
                    return 0.0
                if not self._version:
                    self._list(self._connection)
                self._watch(self._connection)
        except GoneError as error:
            # The cache may be as old as that version: ask for the newest.
            self._version, self._list_from = "", ""
            return self._fell(str(error), is_news=False)
        except RefusalError as error:
            return self._fell(str(error), error.retry_after_s)
        except AwayError as error:
            return self._fell(str(error))
        self._lookout.fell("the watch ended, and goes on")
        return 0.0 if self._was_steady() else self._backoff.failed()

    def _list(self, connection: Connection) -> None:
        accept = self._query.accepts("PartialObjectMetadataList")
        rest: dict[str, Any] = {}
        path = self._query.listing(self._list_from)
        self._follower.replaced(connection.items(path, rest, accept=accept))
        self._version = _version_of(rest)
        self._lookout.listed()
        self._list_from = FROM_CACHE

    def _watch(self, connection: Connection) -> None:
        seconds = random.randint(SHORTEST_WATCH_S, LONGEST_WATCH_S)  # noqa: S311 - spreads load
        path = self._query.watching(self._version, seconds)
        accept = self._query.accepts("PartialObjectMetadata")
        for event in connection.stream(path, accept=accept, begun=self._rose):
            self._note(event)
            if self._closing.is_set():
                return

    def _rose(self) -> None:
        """Know that the server took the watch: from now on every change is heard of."""
        self._rose_at = time.monotonic()
        self._lookout.rose()
        self._follower.wavered()

    def _note(self, event: Json) -> None:
        kind, item = event.get("type"), event.get("object")
        if not isinstance(item, dict):
            return
        if kind == "ERROR":
            raise _refusal(item)
        if kind in CHANGES:
            self._follower.changed(str(kind), item)
        self._version = _version_of(item) or self._version

    def _fell(self, reason: str, at_least_s: float = 0.0, *, is_news: bool = True) -> float:
        was_up = self._lookout.is_up
        self._lookout.fell(reason)
        if self._closing.is_set():
            return 0.0
        self._was_steady()
        if was_up and is_news:
            log.warning("watch_lost", resource=self._lookout.resource, reason=reason)
        self._follower.wavered()
        return self._backoff.failed(at_least_s)

    def _was_steady(self) -> bool:
        """Whether the watch that ended had lasted; then it is forgotten what failed before."""
        lasted_s, self._rose_at = time.monotonic() - self._rose_at, math.inf
        if lasted_s >= STEADY_S:
            self._backoff.forget()
        return lasted_s >= STEADY_S


def _version_of(item: Json) -> str:
    metadata = item.get("metadata")
    found = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""


def _refusal(status: Json) -> RefusalError:
    """Turn the Status object of an ERROR event into what is raised."""
    code, message = status.get("code"), str(status.get("message", ""))[:300]
    if code == GONE:
        return GoneError(message)
    details = status.get("details")
    after = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return RefusalError(
        code if isinstance(code, int) else 500, message, after if isinstance(after, int) else 0.0
    )
