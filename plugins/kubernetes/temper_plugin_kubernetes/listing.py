"""The node's pods from the API server, by its uids."""

import threading
from collections.abc import Callable, Iterable, Mapping

import structlog
from attrs import evolve, field, frozen

from temper_core import DocumentError, Pod, read_pod_object
from temper_kube.list_pages import Json
from temper_plugin_kubernetes.accounts import UNREADABLE, Account

MOST_WARNINGS = 20

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Listed:
    """The known pods at one moment: running pods, and the uids of ended ones.

    ``leaving`` pods are being deleted. They run until their grace period is over, and request no
    CPU any more. ``uids`` are the API server's uids by the uid in the cgroup's name. They differ
    for static pods.
    """

    pods: tuple[Pod, ...] = ()
    ended: frozenset[str] = frozenset()
    leaving: tuple[Pod, ...] = ()
    uids: Mapping[str, str] = field(factory=dict, repr=False)


@frozen
class _Known:
    """One object: the pod, or None if it has ended, and whether it is being deleted."""

    pod: Pod | None
    is_leaving: bool = False


class Listing:
    """Follows the pods. *told* is called after each change, on the watching thread.

    A malformed object is counted and logged, and the former state of the pod is kept.
    """

    def __init__(self, account: Account, told: Callable[[], None] = lambda: None) -> None:
        self._account = account
        self._told = told
        self._pods: dict[str, _Known] = {}
        self._listed = Listed()
        self._is_stale = False
        self._lock = threading.Lock()
        self._warnings = 0

    def now(self) -> Listed:
        """Return the known pods. The record is identical until a pod changes."""
        with self._lock:
            if self._is_stale:
                self._listed, self._is_stale = _listed(self._pods), False
            return self._listed

    def replaced(self, items: Iterable[Json]) -> None:
        """Replace all pods."""
        before = self._pods
        after: dict[str, _Known] = {}
        for item in items:
            uid = _uid(item)
            if known := self._read(item, otherwise=before.get(uid)):
                after[uid] = known
        self._set(after)

    def changed(self, kind: str, item: Json) -> None:
        """Record a pod that was added, modified or deleted."""
        uid = _uid(item)
        after = dict(self._pods)
        if kind == "DELETED":
            after.pop(uid, None)
        elif known := self._read(item, otherwise=after.get(uid)):
            after[uid] = known
        self._set(after)

    def status_changed(self) -> None:
        """Report that the watch went up or down."""
        self._told()

    def _set(self, pods: dict[str, _Known]) -> None:
        with self._lock:
            has_changed = pods != self._pods
            self._pods = pods
            self._is_stale |= has_changed
        if has_changed:
            self._told()

    def _read(self, item: Json, *, otherwise: _Known | None) -> _Known | None:
        metadata = item.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        try:
            return _known(item, metadata, f"pod {name}")
        except DocumentError as error:
            self._account.count(UNREADABLE, "pods")
            if self._warnings < MOST_WARNINGS:
                self._warnings += 1
                log.warning("pod_not_read", pod=name, problems=list(error.problems[:5]))
            return otherwise


def _known(item: Json, metadata: object, source: str) -> _Known:
    if not isinstance(metadata, dict) or metadata.get("deletionTimestamp") is None:
        return _Known(read_pod_object(item, source=source))
    kept = {key: value for key, value in metadata.items() if key != "deletionTimestamp"}
    pod = read_pod_object({**item, "metadata": kept}, source=source)
    # A replacement pod makes the same request again: both together would not fit.
    asks_nothing = evolve(pod, cpu_request_millis=0, cpu_limit_millis=0) if pod else None
    return _Known(asks_nothing, is_leaving=True)


def _listed(pods: Mapping[str, _Known]) -> Listed:
    running = {u: known.pod for u, known in pods.items() if known.pod and not known.is_leaving}
    # Any client may annotate a pod as the mirror of another. A pod with this uid from the server
    # takes precedence, then the first of several mirrors.
    by_uid = {pod.uid: pod for _, pod in reversed(running.items())}
    by_uid |= {uid: pod for uid, pod in running.items() if pod.uid == uid}
    return Listed(
        tuple(by_uid.values()),
        frozenset(uid for uid, known in pods.items() if known.pod is None),
        tuple(known.pod for known in pods.values() if known.pod and known.is_leaving),
        {known.pod.uid: uid for uid, known in pods.items() if known.pod},
    )


def _uid(item: Json) -> str:
    metadata = item.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return uid if isinstance(uid, str) else ""
