"""The pod source ``kubernetes``: this node's pods by a watch, joined with the host's cgroups."""

import os
import select
import threading
from contextlib import suppress

from attrs import evolve

from temper_core import LocalPods, MachineError, Pod, PodSourceContext, Staleness
from temper_kube.access import Access
from temper_kube.list_watch import ListWatch, Query
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.joining import join, with_cgroups
from temper_plugin_kubernetes.kubelet import KubeletView
from temper_plugin_kubernetes.listing import Listed, Listing
from temper_plugin_kubernetes.options import Options

PODS = "/api/v1/pods"
FIRST_ANSWER_S = 2.0
"""How long the first answer waits for the API server: pods placed without it move soon after."""


class KubernetesPods:
    """The pods of one node. Asking never waits for the API server, but for the first time.

    While the server is away its last word stands, but pods whose cgroups have vanished since are
    gone, and new ones are told by their cgroups alone. Until it has answered once, the kubelet is
    asked where the options name its view, and otherwise the cgroup tree tells all there is.
    """

    def __init__(
        self, context: PodSourceContext, access: Access, options: Options, account: Account
    ) -> None:
        self._after_s = options.stale_after_s
        self._status = account.watch_status("pods")
        self._listing = Listing(account, self._ring)
        account.uids = lambda: self._listing.now().uids
        query = Query(PODS, f"spec.nodeName={options.node}")
        self._watch = ListWatch(access, query, self._listing, self._status)
        self._kubelet = KubeletView(options.kubelet) if options.kubelet else None
        self._local = _local(context)
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.epoll()
        self._poll.register(self._bell, select.EPOLLIN)
        self._heard = -1
        self._lock = threading.Lock()
        self._is_started = self._is_closed = False
        self._had_cgroups: frozenset[str] = frozenset()
        self._were_listed: frozenset[str] = frozenset()
        self._basis: tuple[object, ...] = ()
        self._pods: tuple[Pod, ...] = ()

    def fileno(self) -> int:
        """Return the descriptor that is readable with news of the API server or of cgroups."""
        is_deaf = self._is_closed or (self._local is not None and self._heard < 0)
        return -1 if is_deaf else self._poll.fileno()

    def stale(self) -> Staleness | None:
        """Return since when the API server has not been heard, and why; None while it is."""
        found = self._status.stale(self._after_s)
        if found is None or self._status.has_listed.is_set():
            return found
        told = "the kubelet" if self._kubelet and self._kubelet.has_answered else "cgroups alone"
        return evolve(found, reason=f"{found.reason}; until it answers pods are told by {told}")

    def pods(self) -> tuple[Pod, ...]:
        """Return the node's pods. The very same tuple while nothing has changed."""
        self._start_once()
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        found = self._local.pods() if self._local is not None else ()
        self._hear()
        listed, is_away = self._known(), self._status.age_s > self._after_s
        basis = (listed, found, is_away)
        if not self._basis or any(a is not b for a, b in zip(basis, self._basis, strict=True)):
            self._basis, self._pods = basis, self._joined(listed, found, is_away=is_away)
        return self._pods

    def close(self) -> None:
        """End the watch. A second time changes nothing."""
        self._watch.close()
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._poll.close()
            os.close(self._bell)
        if self._local is not None:
            self._local.close()

    def _start_once(self) -> None:
        if not self._is_started:
            self._is_started = True
            self._watch.start()
            self._status.has_listed.wait(FIRST_ANSWER_S)

    def _known(self) -> Listed:
        if self._kubelet is not None and not self._status.has_listed.is_set():
            return self._kubelet.look()
        return self._listing.now()

    def _joined(self, listed: Listed, found: tuple[Pod, ...], *, is_away: bool) -> tuple[Pod, ...]:
        here = with_cgroups(found)
        vanished = self._had_cgroups - here if is_away else frozenset()
        self._had_cgroups |= here
        self._had_cgroups &= {pod.uid for pod in listed.pods} | here
        deleted = self._were_listed
        self._were_listed &= here
        self._were_listed |= {pod.uid for pod in (*listed.pods, *listed.leaving)}
        return join(listed, found, vanished, deleted)

    def _hear(self) -> None:
        """Hear of cgroups too, by whatever descriptor tells of them now."""
        descriptor = self._local.fileno() if self._local is not None else -1
        if descriptor == self._heard:
            return
        with suppress(OSError):  # closed by its owner
            if self._heard >= 0:
                self._poll.unregister(self._heard)
        self._heard = descriptor
        if descriptor >= 0:
            self._poll.register(descriptor, select.EPOLLIN)

    def _ring(self) -> None:
        with self._lock:
            if not self._is_closed:
                os.eventfd_write(self._bell, 1)


def _local(context: PodSourceContext) -> LocalPods | None:
    """Open the host's own view, without systemd's units: a node's services are no pods."""
    options = evolve(context.options, units=False)
    try:
        return LocalPods(evolve(context, options=options))
    except MachineError:
        # Without cgroups pods can still be listed. Only their exact paths are missing.
        return None
