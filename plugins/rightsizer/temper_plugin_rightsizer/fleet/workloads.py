"""The workloads of pods, from the owners in kube-state-metrics."""

import re
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from temper_plugin_rightsizer.fleet.queries import Names
from temper_prometheus.answers import Labels

_SCHEDULED = re.compile(r"(.+)-[0-9]{8,10}")
"""The controller of CronJobs names a Job by its own name and the minute (cronjob/utils.go)."""
NO_OWNER = frozenset({"", "<none>", "Node"})
"""A pod without a controller, or a static pod, whose owner is the node."""


@frozen(order=True)
class Workload:
    """A controller of pods. A pod without a controller is a workload of kind ``Pod``."""

    namespace: str
    kind: str
    name: str

    @property
    def owner(self) -> str:
        """Kind and name, in the form of ``Pod.owner``."""
        return f"{self.kind}/{self.name}"


Named = Mapping[tuple[str, str], tuple[str, str]]
"""Kind and name of the controller, by namespace and name."""


@frozen
class Owners:
    """Controllers of pods, of ReplicaSets, and of Jobs."""

    pods: Named = field(factory=dict)
    replicasets: Named = field(factory=dict)
    jobs: Named = field(factory=dict)

    def workload(self, namespace: str, pod: str) -> Workload:
        """Return the workload of a pod: the Deployment of its ReplicaSet, the CronJob of its Job.

        A ReplicaSet or Job without a known owner is a workload of its own. A Job with the name of a
        scheduled one belongs to a CronJob.
        """
        return self.controller(namespace, *self.pods.get((namespace, pod), ("Pod", pod)))

    def controller(self, namespace: str, kind: str, name: str) -> Workload:
        """Return the workload that the controller of a pod belongs to, as ``workload`` does."""
        if kind == "ReplicaSet":
            kind, name = self.replicasets.get((namespace, name), (kind, name))
        elif kind == "Job":
            kind, name = self.jobs.get((namespace, name)) or _by_pattern(name)
        return Workload(namespace, kind, name)


def controllers(rows: Iterable[Labels], names: Names, label: str) -> Named:
    """Return the controllers of the objects that are named by *label* in *rows*."""
    return {
        (row.get(names.namespace, ""), row.get(label, "")): (row["owner_kind"], row["owner_name"])
        for row in rows
        if row.get("owner_kind", "") not in NO_OWNER and row.get("owner_name")
    }


def _by_pattern(job: str) -> tuple[str, str]:
    found = _SCHEDULED.fullmatch(job)
    return ("CronJob", found[1]) if found else ("Job", job)
