"""The running pods of a workload."""

from collections.abc import Set as AbstractSet

from attrs import frozen

from temper_core import InputError
from temper_core.console import Row
from temper_core.observed import rows, table, text
from temper_kube.api_server import METADATA, ApiServer
from temper_kube.bounded_answers import bounded_answers
from temper_kube.controllers import controller_uid
from temper_plugin_rightsizer.kinds import REPLICA_SET


@frozen
class RunningPods:
    """The pods that have the *labels* of a workload and one of its *controllers*, by uid.

    Labels alone are no proof. Selectors of workloads overlap, and any author of a pod can use them.
    """

    labels: str
    controllers: AbstractSet[str]

    @classmethod
    def of(cls, api: ApiServer, kind: str, item: Row) -> "RunningPods":
        """Return the pods of the workload *item*. Raise InputError if its selector is no labels."""
        labels = _labels(kind, item)
        if kind == "Deployment":
            return cls(labels, _replica_sets(api, labels, item))
        return cls(labels, {_uid(item)})

    def has(self, pod: Row) -> bool:
        """Return whether the workload controls *pod*."""
        return controller_uid(pod) in self.controllers

    def belongs_elsewhere(self, pod: Row) -> bool:
        """Return whether another controller has *pod*, which is then no pod of the workload."""
        return controller_uid(pod) is not None and not self.has(pod)


def _labels(kind: str, item: Row) -> str:
    selector = table(table(item, "spec"), "selector")
    labels = table(selector, "matchLabels")
    if not labels or rows(selector, "matchExpressions"):
        raise InputError(f"the pods of this {kind} cannot be told by labels alone")
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _replica_sets(api: ApiServer, labels: str, deployment: Row) -> AbstractSet[str]:
    """Return the uids of the ReplicaSets that *deployment* controls."""

    def owned(item: Row) -> str:
        return _uid(item) if controller_uid(item) == _uid(deployment) else ""

    path = REPLICA_SET.path(text(table(deployment, "metadata"), "namespace"))
    with bounded_answers():
        return set(api.read(path, owned, labels, accept=METADATA)) - {""}


def _uid(item: Row) -> str:
    return text(table(item, "metadata"), "uid")
