"""The workload of a pod: its top controller, as far as the pod itself names it."""

import re
from hashlib import sha256

from attrs import frozen

from temper_core import Pod

KINDS = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet")
TEMPLATE_HASH = "pod-template-hash"
LONGEST_NAME = 253
LONGEST_LABEL = 63
HASH_DIGITS = 10
_SCHEDULED = re.compile(r"(.+)-[0-9]{8,10}")
"""The controller of CronJobs names a Job by its own name and the minute (cronjob/utils.go)."""


@frozen(order=True)
class Workload:
    """A controller of pods. A pod without one is a workload of kind ``Pod``."""

    namespace: str
    kind: str
    name: str

    @property
    def object_name(self) -> str:
        """The name of the object that holds its profile."""
        name = f"{self.kind}-{self.name}".lower()
        if len(name) <= LONGEST_NAME:
            return name
        # A cut alone would give two workloads one object.
        return f"{name[: LONGEST_NAME - HASH_DIGITS - 1]}-{_digest(name)[:HASH_DIGITS]}"

    @property
    def profile_name(self) -> str:
        """The namespace and the name of that object."""
        return f"{self.namespace}/{self.object_name}"

    @property
    def label_value(self) -> str:
        """The name as the value of a label, by its hash if it is too long for one."""
        return self.name if len(self.name) <= LONGEST_LABEL else _digest(self.name)[:LONGEST_LABEL]


def workload_of(pod: Pod) -> Workload:
    """Return the workload of *pod*: the Deployment of its ReplicaSet, the CronJob of its Job."""
    kind, _, name = pod.owner.partition("/")
    suffix = f"-{pod.labels.get(TEMPLATE_HASH)}"
    scheduled = _SCHEDULED.fullmatch(name)
    if kind == "ReplicaSet" and name.endswith(suffix) and name != suffix:
        kind, name = "Deployment", name.removesuffix(suffix)
    elif kind == "Job" and scheduled:
        kind, name = "CronJob", scheduled[1]
    elif kind not in KINDS:
        kind, name = "Pod", pod.name
    return Workload(pod.namespace, kind, name)


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
