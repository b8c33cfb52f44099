"""Deletes the profiles of workloads that are really gone."""

import structlog
from attrs import define, field

from temper_core import MachineError
from temper_kube.api_server import ApiServer
from temper_kube.failures import ConflictError, NotFoundError, UnreachableError
from temper_plugin_power.controller.classifier import Cluster
from temper_plugin_power.controller.leading import NotLeadingError
from temper_plugin_power.controller.owners import VERSIONS, find_owner
from temper_plugin_power.controller.stored_profiles import StoredProfile

MOST_AT_ONCE = 100
"""Profiles that one cycle asks about, so that it ends."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class Collector:
    """Deletes profiles that the operator made, whose workload has no pods and does not exist.

    Kubernetes collects most of them by their owner. A workload of zero replicas exists.
    """

    cluster: Cluster
    server: ApiServer
    _asked: int = field(default=0, init=False)

    def collect(self) -> int:
        """Return the number of deleted profiles. One whose workload cannot be read stays.

        A server that does not answer ends the cycle: each further request would wait as long.
        """
        without = sorted(
            (each for each in self.cluster.profiles.records() if self._is_candidate(each)),
            key=lambda each: (each.namespace, each.name),
        )
        if not without:
            return 0
        begin = self._asked % len(without)
        turn = (without[begin:] + without[:begin])[:MOST_AT_ONCE]
        self._asked = begin
        deleted = 0
        for each in turn:
            self._asked += 1
            try:
                deleted += self._delete(each)
            except MachineError as error:
                name = f"{each.namespace}/{each.name}"
                log.warning("profile_not_collected", profile=name, reason=str(error)[:300])
                if isinstance(error, (UnreachableError, NotLeadingError)):
                    break
        return deleted

    def _is_candidate(self, stored: StoredProfile) -> bool:
        is_ours = stored.is_ours and not stored.is_manual and stored.workload.kind in VERSIONS
        return is_ours and not self.cluster.pods.of(stored.workload)

    def _delete(self, stored: StoredProfile) -> bool:
        """Delete a profile, unless its workload exists or the object has changed meanwhile."""
        if find_owner(stored.workload, self.server) is not None:
            return False
        conditions = {"uid": stored.uid, "resourceVersion": stored.version}
        try:
            self.server.delete(stored.path, {"preconditions": conditions})
        except (NotFoundError, ConflictError):
            return False
        log.info("profile_deleted", profile=f"{stored.namespace}/{stored.name}")
        return True
