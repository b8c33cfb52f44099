"""The instrument of a cluster: follows the kill switch and writes the node's state."""

from collections.abc import Sequence

import structlog

from temper_core import InstrumentContext, OpenInstrument, Snapshot
from temper_kube.access import Access
from temper_kube.list_watch import ListWatch, Query
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.annotation_requests import AnnotationRequests
from temper_plugin_kubernetes.node import NODES, NodeWatch
from temper_plugin_kubernetes.options import Options
from temper_plugin_kubernetes.writing import Writer

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

FIRST_ANSWER_S = 2.0
"""How long the agent's start waits for the kill switch of its node."""


class ClusterInstrument(OpenInstrument):
    """Watches and annotates the agent's own node. Opening waits for the first answer.

    If the API server does not answer in time, its last request stays in force: the agent keeps
    requests for safe mode across restarts.
    """

    def __init__(
        self, context: InstrumentContext, access: Access, options: Options, account: Account
    ) -> None:
        self._status = status = account.watch_status("node")
        self._name = options.node
        self._after_s = options.stale_after_s
        annotation_requests = AnnotationRequests(context, self._look)
        self._node = NodeWatch(options.node, annotation_requests.obey, self._look)
        self._writer = Writer(access, options, account, self._node.now, annotation_requests)
        # A Node with its status is about 20 KiB, most of it names of images.
        query = Query(NODES, f"metadata.name={options.node}", metadata_only=True)
        self._watch = ListWatch(access, query, self._node, status)
        self._watch.start()
        self._writer.start()
        if not status.has_listed.wait(FIRST_ANSWER_S):
            log.warning("kill_switch_not_known", node=options.node, reason=status.reason)

    def tell(self, snapshot: Snapshot) -> None:
        """Record the latest snapshot. Returns at once."""
        self._writer.tell(snapshot)

    def defects(self) -> Sequence[str]:
        """Report that the kill switch is not heard: the watch is stale, or there is no such node.

        A node that the kubelet is about to register has as long as a watch that is down.
        """
        if stale := self._status.stale(self._after_s):
            return (f"the node's annotations are not heard, nor the kill switch: {stale.reason}",)
        if self._node.absent_s > self._after_s:
            missing = f"the cluster has no node {self._name!r}"
            unheard = "neither the kill switch by annotation nor pods are heard"
            return (f"{missing}, so {unheard}; `node` in [plugins.kubernetes] names it",)
        return ()

    def close(self) -> None:
        """Remove the agent's annotations and end the watch."""
        self._writer.close()
        self._watch.close()

    def _look(self) -> None:
        self._writer.look()
