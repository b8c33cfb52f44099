"""Chooses the Pod object that stands for a cgroup, if several claim it.

The API server shows a static pod as a mirror pod with another uid. The mirror's annotations claim
the uid in the cgroup's name, and any client that may create pods can write them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from temper_core.node.pod_reading import MIRROR
from temper_core.records.pods import Pod

Rank = tuple[int, str]
ITS_OWN_UID, MIRROR_OF_A_NODE, ONLY_CLAIMED = 0, 1, 2
LAST = "~"
"""Sorts behind every time of RFC 3339."""


def claim_rank(values: Mapping[str, Any]) -> Rank:
    """Return the rank of a Pod object among those of one cgroup uid. The lowest has the cgroup.

    A pod that is no mirror has its own uid, which no client can choose. The kubelet makes the Node
    the controller of a mirror pod (CreateMirrorPod, pkg/kubelet/pod/mirror_client.go, 1.17). A
    client can forge that as well, so the oldest such mirror counts: the API server sets the time.
    """
    metadata = _table(values.get("metadata"))
    if MIRROR not in _table(metadata.get("annotations")):
        return ITS_OWN_UID, ""
    made = metadata.get("creationTimestamp")
    rank = MIRROR_OF_A_NODE if _is_of_a_node(metadata) else ONLY_CLAIMED
    return rank, made if isinstance(made, str) and made else LAST


class PodClaims:
    """Collects pods, one for each uid. *report* gets a line about each conflict."""

    def __init__(self, report: Callable[[str], object] | None = None) -> None:
        self._report = report
        self._ranked: dict[str, tuple[Rank, Pod]] = {}

    def add(self, pod: Pod, values: Mapping[str, Any]) -> None:
        """Add the *pod* of the Pod object *values*."""
        rank = claim_rank(values)
        if pod.uid not in self._ranked:
            self._ranked[pod.uid] = rank, pod
            return
        before, other = self._ranked[pod.uid]
        winner, loser = (pod, other) if rank < before else (other, pod)
        self._ranked[pod.uid] = min(rank, before), winner
        if self._report is not None and winner.key != loser.key:
            self._report(conflict_text(winner, loser))

    def pods(self) -> tuple[Pod, ...]:
        """Return the pods in the order in which their uids came."""
        return tuple(pod for _, pod in self._ranked.values())


def conflict_text(winner: Pod, loser: Pod) -> str:
    """Return the line about two pods that claim one cgroup."""
    return (
        f"pod {loser.key} claims the cgroup of pod {winner.key} (uid {winner.uid}), and is left out"
    )


def _is_of_a_node(metadata: Mapping[str, Any]) -> bool:
    owners = metadata.get("ownerReferences")
    tables = map(_table, owners if isinstance(owners, list) else ())
    return any(owner.get("kind") == "Node" and owner.get("controller") is True for owner in tables)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
