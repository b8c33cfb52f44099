"""The pod source ``kubernetes``: this node's pods from a watch, joined with the host's cgroups."""

import math
import os
import select
import threading
from contextlib import suppress

from attrs import evolve

from temper_core import (
    ExecutionNews,
    LocalPods,
    MachineError,
    Pod,
    PodSourceContext,
    Staleness,
)
from temper_kube.access import Access
from temper_kube.list_watch import ListWatch, Query
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.joining import join, with_cgroups
from temper_plugin_kubernetes.kubelet import KubeletView
from temper_plugin_kubernetes.listing import Listed, Listing
from temper_plugin_kubernetes.options import Options

PODS = "/api/v1/pods"
FIRST_ANSWER_S = 2.0
"""How long the first call waits for the API server, so that pods are not placed twice."""


class KubernetesPods:
    """The pods of one node. Only the first call waits for the API server.

    While the server does not answer, its last list stays in use. Pods whose cgroups have vanished
    are left out, and new pods are read from their cgroups alone. Before the first answer, pods come
    from the kubelet's read-only port if the options name one, and otherwise from the cgroup tree.
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
        """Return a descriptor that is readable after changes of listed pods or cgroups, or -1."""
        is_deaf = self._is_closed or (self._local is not None and self._heard < 0)
        return -1 if is_deaf else self._poll.fileno()

    def stale(self) -> Staleness | None:
        """Return for how long and why the API server has not answered. None if it is current."""
        staleness = self._status.stale(self._after_s)
        if staleness is None or self._status.has_listed.is_set():
            return staleness
        source = "the kubelet" if self._kubelet and self._kubelet.has_answered else "cgroups alone"
        return evolve(
            staleness, reason=f"{staleness.reason}; until it answers, pods come from {source}"
        )

    def again_in_s(self) -> float:
        """Return the seconds until the programs of a container are to be read again."""
        return self._local.again_in_s() if self._local is not None else math.inf

    def executed(self, news: ExecutionNews) -> None:
        """Read the containers again in which a process executed another program."""
        if self._local is not None:
            self._local.executed(news)

    def pods(self) -> tuple[Pod, ...]:
        """Return the node's pods. The tuple is identical until a pod changes."""
        self._start_once()
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        local_pods = self._local.pods() if self._local is not None else None
        self._hear()
        listed, is_away = self._known(), self._status.age_s > self._after_s
        basis = (listed, local_pods, is_away)
        if not self._basis or any(a is not b for a, b in zip(basis, self._basis, strict=True)):
            self._basis, self._pods = basis, self._joined(listed, local_pods, is_away=is_away)
        return self._pods

    def close(self) -> None:
        """End the watch. A second call has no effect."""
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

    def _joined(
        self, listed: Listed, local_pods: tuple[Pod, ...] | None, *, is_away: bool
    ) -> tuple[Pod, ...]:
        here = with_cgroups(local_pods or ())
        vanished = self._had_cgroups - here if is_away else frozenset()
        self._had_cgroups |= here
        present = {pod.uid for pod in (*listed.pods, *listed.waiting)}
        self._had_cgroups &= present | here
        deleted = self._were_listed
        self._were_listed &= here
        self._were_listed |= present | {pod.uid for pod in listed.leaving}
        return join(listed, local_pods, vanished, deleted)

    def _hear(self) -> None:
        """Poll the current descriptor of cgroup changes too."""
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
    """Open the host's cgroup view without systemd units: a node's services are not pods."""
    options = evolve(context.options, units=False)
    try:
        return LocalPods(evolve(context, options=options))
    except MachineError:
        # Without cgroups pods can still be listed, without their exact paths.
        return None
