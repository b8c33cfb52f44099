"""The node's pods from the API server, by its uids."""

import threading
from collections.abc import Callable, Iterable, Mapping

import structlog
from attrs import evolve, field, frozen

from temper_core import DocumentError, Pod, claim_rank, read_pod_object
from temper_kube.bounded_warnings import BoundedWarnings
from temper_kube.list_pages import Json
from temper_plugin_kubernetes.accounts import UNREADABLE, Account
from temper_plugin_kubernetes.pod_bounds import (
    MOST_UNACCEPTED_CHARACTERS,
    bounded,
    characters,
    is_pending,
    is_unaccepted,
)

MOST_WARNINGS = 20

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Listed:
    """The known pods at one moment: running pods, and the uids of ended ones.

    ``waiting`` pods are Pending: no container of theirs has run yet. ``leaving`` pods are being
    deleted. They run until their grace period is over, and request no CPU any more. ``uids`` are
    the API server's uids by the uid in the cgroup's name. They differ for static pods.
    """

    pods: tuple[Pod, ...] = ()
    ended: frozenset[str] = frozenset()
    leaving: tuple[Pod, ...] = ()
    uids: Mapping[str, str] = field(factory=dict, repr=False)
    waiting: tuple[Pod, ...] = ()


@frozen
class _Known:
    """One object: the pod, or None if it has ended, and whether it is being deleted or Pending.

    ``rank`` decides which of several pods has the cgroup that they claim. See ``claim_rank``.
    ``unaccepted`` are the characters of a pod that no kubelet has accepted, or 0.
    """

    pod: Pod | None
    rank: tuple[int, str] = (0, "")
    is_leaving: bool = False
    is_waiting: bool = False
    unaccepted: int = 0


class Listing:
    """Follows the pods. *changed* is called after each change, on the watching thread.

    A malformed object is counted and logged. The pod keeps its former tier and cgroup, and requests
    no CPU: the new request may be smaller, and no user may keep cores by an object of that kind.
    Of the pods that no kubelet has accepted, those beyond ``MOST_UNACCEPTED_CHARACTERS`` are not
    read before it has. Any author of pods can name this node, and no kubelet limits their number.
    """

    def __init__(self, account: Account, changed: Callable[[], None] = lambda: None) -> None:
        self._account = account
        self._changed = changed
        self._pods: dict[str, _Known] = {}
        self._listed = Listed()
        self._is_stale = False
        self._lock = threading.Lock()
        self._warnings = BoundedWarnings()
        self._refused: frozenset[tuple[str, str]] = frozenset()

    def now(self) -> Listed:
        """Return the known pods. The record is identical until a pod changes."""
        with self._lock:
            if self._is_stale:
                self._listed, self._is_stale = _listed(self._pods), False
                self._warn_of_claims(_refused_claims(self._pods))
            return self._listed

    def replaced(self, items: Iterable[Json]) -> None:
        """Replace all pods."""
        before = self._pods
        after: dict[str, _Known] = {}
        unaccepted = 0
        for item in items:
            uid = _uid(item)
            if known := self._read(item, otherwise=before.get(uid), unaccepted=unaccepted):
                after[uid] = known
                unaccepted += known.unaccepted
        self._set(after)

    def changed(self, kind: str, item: Json) -> None:
        """Record a pod that was added, modified or deleted."""
        uid = _uid(item)
        after = dict(self._pods)
        if kind == "DELETED":
            after.pop(uid, None)
        elif known := self._read(
            item,
            otherwise=after.get(uid),
            unaccepted=sum(known.unaccepted for other, known in after.items() if other != uid),
        ):
            after[uid] = known
        self._set(after)

    def status_changed(self) -> None:
        """Report that the watch went up or down."""
        self._changed()

    def _set(self, pods: dict[str, _Known]) -> None:
        with self._lock:
            has_changed = pods != self._pods
            self._pods = pods
            self._is_stale |= has_changed
        if has_changed:
            self._changed()

    def _warn_of_claims(self, refused: frozenset[tuple[str, str]]) -> None:
        for pod, holder in sorted(refused - self._refused)[:MOST_WARNINGS]:
            log.warning("pod_claim_refused", pod=pod, cgroup_of=holder)
        self._refused = refused

    def _read(self, item: Json, *, otherwise: _Known | None, unaccepted: int) -> _Known | None:
        metadata = item.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}

        def warn(event: str, problems: list[str]) -> None:
            self._account.count(UNREADABLE, "pods")
            if self._warnings.allows(metadata.get("namespace")):
                log.warning(event, pod=metadata.get("name"), problems=problems)

        if unaccepted >= MOST_UNACCEPTED_CHARACTERS and is_unaccepted(item):
            warn("pod_not_read", ["waits for the kubelet, as too many other pods do"])
            return None
        try:
            return _known(item, metadata, lambda doubt: warn("quantity_not_read", [doubt]))
        except DocumentError as error:
            warn("pod_not_read", list(error.problems[:5]))
            if otherwise is None or otherwise.pod is None:
                return otherwise
            return evolve(otherwise, pod=_asking_nothing(otherwise.pod))


def _known(item: Json, metadata: Json, doubted: Callable[[str], object]) -> _Known:
    source = f"pod {metadata.get('name')}"
    is_leaving = metadata.get("deletionTimestamp") is not None
    if is_leaving:
        kept = {key: value for key, value in metadata.items() if key != "deletionTimestamp"}
        item = {**item, "metadata": kept}
    pod = read_pod_object(item, source=source, doubted=doubted)
    if pod is None:
        return _Known(None, claim_rank(item))
    pod = bounded(pod)
    return _Known(
        # A replacement pod makes the same request again: both together would not fit.
        _asking_nothing(pod) if is_leaving else pod,
        claim_rank(item),
        is_leaving=is_leaving,
        is_waiting=is_pending(item) and not is_leaving,
        unaccepted=characters(pod) if is_unaccepted(item) else 0,
    )


def _asking_nothing(pod: Pod) -> Pod:
    return evolve(pod, cpu_request_millis=0, cpu_limit_millis=0)


def _listed(pods: Mapping[str, _Known]) -> Listed:
    holders = _holders(pods)
    by_uid = {known.pod.uid: known.pod for known in holders.values() if known.pod}
    leaving = {known.pod.uid for known in holders.values() if known.pod and known.is_leaving}
    waiting = {known.pod.uid for known in holders.values() if known.pod and known.is_waiting}
    others = leaving | waiting
    return Listed(
        tuple(pod for uid, pod in by_uid.items() if uid not in others),
        frozenset(uid for uid, known in pods.items() if known.pod is None),
        tuple(pod for uid, pod in by_uid.items() if uid in leaving),
        {known.pod.uid: uid for uid, known in holders.items() if known.pod},
        tuple(pod for uid, pod in by_uid.items() if uid in waiting),
    )


def _holders(pods: Mapping[str, _Known]) -> Mapping[str, _Known]:
    """Return the object of each claimed cgroup, by the API server's uid."""
    strongest: dict[str, str] = {}
    for uid, known in pods.items():
        if known.pod is not None:
            other = strongest.setdefault(known.pod.uid, uid)
            if known.rank < pods[other].rank:
                strongest[known.pod.uid] = uid
    return {uid: pods[uid] for uid in strongest.values()}


def _refused_claims(pods: Mapping[str, _Known]) -> frozenset[tuple[str, str]]:
    """Return each pod that claims the cgroup of another, with the name of that one."""
    holders = _holders(pods)
    names = {known.pod.uid: known.pod.key for known in holders.values() if known.pod}
    return frozenset(
        (known.pod.key, names[known.pod.uid])
        for uid, known in pods.items()
        if known.pod and uid not in holders
    )


def _uid(item: Json) -> str:
    metadata = item.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return uid if isinstance(uid, str) else ""
