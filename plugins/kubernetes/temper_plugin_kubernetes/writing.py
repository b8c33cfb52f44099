"""Writes to the API server on a thread of its own: changed values only, at a bounded rate."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from temper_core import Snapshot
from temper_kube.access import Access
from temper_kube.backoff import Backoff
from temper_kube.connection import Connection
from temper_kube.failures import RefusalError, UnreachableError
from temper_kube.list_pages import Json
from temper_plugin_kubernetes.accounts import WRITES, Account
from temper_plugin_kubernetes.annotation_requests import AnnotationRequests
from temper_plugin_kubernetes.annotations import ANSWERS, annotations_of, changes, removals
from temper_plugin_kubernetes.events import EventSubject, NodeEvent, event_object, happenings
from temper_plugin_kubernetes.node import NODES, NodeState
from temper_plugin_kubernetes.options import Options
from temper_plugin_kubernetes.pending_events import PendingEvents

MERGE_PATCH = "application/merge-patch+json"
EVENTS_AT_ONCE = 25
LOOK_S = 60.0
ANSWER_S = 1.0
"""Answers have a short interval of their own, because an operator waits for them."""
CLOSE_S = 3.0
FAREWELL_S = 2.0
CONFLICT, NOT_FOUND = 409, 404
UNAUTHORIZED, TOO_MANY_REQUESTS, SERVER_ERROR = 401, 429, 500

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class WriteBackoff:
    """The time of the next attempt of one kind of write. A repeated failure is logged once."""

    def __init__(self, name: str, every_s: float, account: Account) -> None:
        self._name = name
        self._every_s = every_s
        self._account = account
        self._backoff = Backoff()
        self._problem = ""
        self.due_at = 0.0

    def attempt(self, write: Callable[[], bool], now: float) -> None:
        """Call *write* if it is due. It returns whether it wrote anything."""
        if now < self.due_at:
            return
        try:
            if write():
                self.due_at = now + self._every_s
                self._account.count(WRITES, self._name)
        except RefusalError as error:
            self._failed(error, now, error.retry_after_s)
        except UnreachableError as error:
            self._failed(error, now)
        else:
            self._backoff.forget()
            self._problem = ""

    def dropped(self, error: RefusalError) -> None:
        """Record that the API server refuses one write for good. Others follow without a wait."""
        self._record(error)

    def _failed(
        self, error: UnreachableError | RefusalError, now: float, after_s: float = 0.0
    ) -> None:
        self.due_at = now + self._every_s + self._backoff.failed(after_s)
        self._record(error)

    def _record(self, error: UnreachableError | RefusalError) -> None:
        self._account.count(WRITES, f"{self._name}_failed")
        if str(error) != self._problem:
            self._problem = str(error)
            log.warning("cluster_not_told", what=self._name, reason=self._problem)


class Writer:
    """Keeps the node's annotations and the events up to date with the last snapshot.

    It compares them with the state that *node* returns from a watch: values that are there already
    are not written. ``close`` removes the agent's annotations. Nothing is written beside an agent
    that may enforce, which writes to the same Node.
    """

    def __init__(
        self,
        access: Access,
        options: Options,
        account: Account,
        node: Callable[[], NodeState],
        annotation_requests: AnnotationRequests,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._options = options
        self._account = account
        self._node = node
        self._annotation_requests = annotation_requests
        self._clock = clock
        self._annotating = WriteBackoff("annotations", options.write_every_s, account)
        self._answering = WriteBackoff("answers", min(ANSWER_S, options.write_every_s), account)
        self._telling = WriteBackoff("events", options.write_every_s, account)
        self._story = PendingEvents()
        self._snapshot: Snapshot | None = None
        self._refresh_at = 0.0
        self._news = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster-writer", daemon=True)

    def start(self) -> None:
        """Begin. Returns at once."""
        self._thread.start()

    def tell(self, snapshot: Snapshot) -> None:
        """Record the latest snapshot. Returns at once."""
        self._snapshot = snapshot
        self._news.set()

    def look(self) -> None:
        """Compare again, because the node has changed."""
        self._news.set()

    def close(self) -> None:
        """Remove the annotations and end. Waits at most CLOSE_S."""
        self._closing.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._closing.is_set():
            self._news.wait(self._rest_s())
            self._news.clear()
            if not self._closing.is_set():
                self._survive(self._turn)
        self._annotating.due_at = 0.0
        self._survive(self._take_leave)

    def _survive(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # a bug must not end the thread: the next turn may succeed
            log.exception("cluster_writer_failed")
            self._account.count(WRITES, "turn_failed")
            self._closing.wait(self._options.write_every_s)

    def _take_leave(self) -> None:
        self._annotating.attempt(self._say_farewell, self._clock())

    def _rest_s(self) -> float:
        """Return the seconds until the next write is due. News end the wait, but not a backoff."""
        paces = (self._annotating, self._answering, self._telling)
        moments = [pace.due_at for pace in paces]
        waiting = [at - self._clock() for at in moments if at > self._clock()]
        return min([LOOK_S, *waiting])

    def _turn(self) -> None:
        snapshot, now = self._snapshot, self._clock()
        if self._annotation_requests.is_beside_agent:
            return
        self._answering.attempt(self._answer, now)
        if snapshot is None:
            return
        if self._options.annotations:
            self._annotating.attempt(lambda: self._annotate(snapshot, now), now)
        if self._options.events and not self._annotation_requests.is_leaving:
            node = self._node()
            subject = EventSubject("Node", self._options.node, node.uid)
            self._story.goes_on(happenings(snapshot, subject, self._account.uids()), now)
            self._telling.attempt(self._tell_events, now)

    def _annotate(self, snapshot: Snapshot, now: float) -> bool:
        node = self._node()
        is_refresh = now >= self._refresh_at
        patch = (
            removals(node.annotations)
            if self._annotation_requests.is_leaving
            else changes(annotations_of(snapshot), node.annotations, is_refresh=is_refresh)
        )
        if not node.uid or not patch:
            return False
        self._patch_node(patch)
        self._refresh_at = now + self._options.refresh_s
        return True

    def _answer(self) -> bool:
        node = self._node()
        patch = self._annotation_requests.answer(node.annotations)
        if node.uid and patch:
            self._patch_node(patch)
        return bool(node.uid and patch)

    def _say_farewell(self) -> bool:
        if self._annotation_requests.is_beside_agent:
            return False
        present = self._node().annotations
        patch = removals(present) if self._options.annotations else {}
        patch |= {key: None for key in ANSWERS if key in present}
        if patch:
            self._patch_node(patch, FAREWELL_S)
        return bool(patch)

    def _patch_node(self, patch: Json, timeout_s: float = 10.0) -> None:
        path = f"{NODES}/{self._options.node}"
        body = {"metadata": {"annotations": patch}}
        with Connection(self._access, timeout_s) as connection:
            connection.ask("PATCH", path, body, media_type=MERGE_PATCH)

    def _tell_events(self) -> bool:
        sent = 0
        with Connection(self._access) as connection:
            while sent < EVENTS_AT_ONCE and (happening := self._story.next) is not None:
                try:
                    self._tell_event(connection, happening)
                except RefusalError as error:
                    if not is_of_one_object(error):
                        raise
                    self._telling.dropped(error)
                self._story.drop_next()
                sent += 1
        return bool(sent)

    def _tell_event(self, connection: Connection, happening: NodeEvent) -> None:
        """Create the event, or update the existing one of the same subject and reason."""
        body = event_object(happening, _now(), self._options.node)
        namespace = happening.subject.namespace or "default"
        path = f"/api/v1/namespaces/{namespace}/events"
        try:
            connection.ask("POST", path, body)
        except RefusalError as error:
            if error.status == CONFLICT:
                again = {key: body[key] for key in ("message", "lastTimestamp", "type")}
                connection.ask("PATCH", f"{path}/{happening.name}", again, media_type=MERGE_PATCH)
            elif error.status != NOT_FOUND:  # the namespace is gone, and the pod with it
                raise


def is_of_one_object(error: RefusalError) -> bool:
    """Whether the refusal is about this object alone, as in a namespace that terminates."""
    concerns_all = error.status in (UNAUTHORIZED, TOO_MANY_REQUESTS) or error.status >= SERVER_ERROR
    return not concerns_all


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
