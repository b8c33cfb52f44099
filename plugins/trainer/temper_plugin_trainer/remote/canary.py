"""The pods that a training in a cluster may touch."""

import math
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_core import InputError
from temper_core.observed import rows, table, text
from temper_kube.controllers import controller_uid
from temper_kube.kubectl import Kubectl
from temper_kube.placing import PlacedPod, name_of

MOST_PODS = 64
"""Pods of a trial, by the agent's bound."""

Object = Mapping[str, Any]


@frozen
class Canary:
    """Pods of one namespace and one node. ``uids`` has the uid of each by its name."""

    namespace: str
    node: str
    uids: Mapping[str, str]

    @property
    def pods(self) -> tuple[str, ...]:
        """The pods as the agent names them."""
        return tuple(f"{self.namespace}/{name}" for name in self.uids)


def canary_of(kubectl: Kubectl, placed: PlacedPod, fraction: float | None) -> Canary:
    """Return the pod alone, or with others of its owner on the same node.

    *fraction* bounds the number to that share of the owner's running pods in the cluster, rounded
    down, at least one. Raises InputError if the pod has no owner, MachineError for a name that is
    none.
    """
    namespace, _, name = placed.pod.partition("/")
    chosen = {name: _uid(placed.found)}
    if fraction is not None:
        owner = controller_uid(placed.found)
        if not owner:
            raise InputError(f"--fraction: the pod {placed.pod} has no owner")
        listed = kubectl.read("pods", f"--namespace={namespace}")
        siblings = [
            pod for pod in rows(listed, "items") if controller_uid(pod) == owner and _runs(pod)
        ]
        most = min(MOST_PODS, max(1, math.floor(fraction * len(siblings))))
        here = [pod for pod in siblings if text(table(pod, "spec"), "nodeName") == placed.node]
        others = {name_of(pod, "name"): _uid(pod) for pod in here}
        others.pop(name, None)
        chosen |= dict(sorted(others.items())[: most - 1])
    return Canary(namespace, placed.node, chosen)


def _uid(pod: Object) -> str:
    return text(table(pod, "metadata"), "uid")


def _runs(pod: Object) -> bool:
    is_ending = "deletionTimestamp" in table(pod, "metadata")
    return text(table(pod, "status"), "phase") == "Running" and not is_ending
