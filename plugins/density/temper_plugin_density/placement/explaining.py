"""Explanations of scores for operators: the score of each node, its inputs and its reason."""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from temper_core import client_network
from temper_plugin_density.placement.asking import PodDemand
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.scoring import Score

MOST_BYTES_KEPT = 32 * 1024 * 1024
SCORE_BYTES = 700
"""The most that a score with its inputs takes, beside the name of its node."""
RECORD_BYTES = 1_000
ANSWERED = "what the scheduler was answered"
RECKONED = "reckoned now"
RECKONED_AGAIN = "reckoned now, as if another such pod came"


@frozen
class ScoreRecord:
    """The answer for a pod, and its time in seconds since the epoch.

    ``asker`` is the address that was answered. It is empty for a score that was not asked for.
    """

    demand: PodDemand
    scores: tuple[Score, ...]
    at: float
    asker: str = ""

    @property
    def size_bytes(self) -> int:
        """An upper bound of the memory that the record takes."""
        names = sum(len(score.node) for score in self.scores)
        texts = 4 * (names + len(self.demand.pod) + len(self.demand.tier_reason))
        return RECORD_BYTES + SCORE_BYTES * len(self.scores) + texts


class Decisions:
    """The latest answers by asker and pod, within a bound of bytes.

    An asker never replaces the answer of another. Above the bound the oldest answer of the asker
    with the most bytes goes, of the network with the most bytes. So no network displaces the
    answers of one that holds less (``client_network``: IPv6 addresses count by their /64).
    """

    def __init__(self, most_bytes: int = MOST_BYTES_KEPT) -> None:
        self._most_bytes = most_bytes
        self._kept: dict[str, OrderedDict[str, ScoreRecord]] = {}
        self._bytes: dict[str, Counter[str]] = {}
        """The bytes of each asker, by network."""
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """The memory that all answers take, at most."""
        return self._size_bytes

    def keep(self, decision: ScoreRecord) -> None:
        """Keep an answer. Drop the oldest ones above the limit."""
        self._drop(decision.asker, decision.demand.pod)
        self._kept.setdefault(decision.asker, OrderedDict())[decision.demand.pod] = decision
        self._count(decision.asker, decision.size_bytes)
        while self._size_bytes > self._most_bytes:
            largest = self._largest_asker()
            self._drop(largest, next(iter(self._kept[largest])))

    def of(self, pod: str) -> tuple[ScoreRecord, ...]:
        """Return each asker's last answer for the pod with that namespace/name, newest first."""
        records = [answers[pod] for answers in self._kept.values() if pod in answers]
        return tuple(sorted(records, key=lambda decision: -decision.at))

    def _largest_asker(self) -> str:
        """Return the asker with the most bytes of the network with the most bytes."""
        askers = max(self._bytes.values(), key=Counter.total)
        return max(askers, key=askers.__getitem__)

    def _drop(self, asker: str, pod: str) -> None:
        answers = self._kept.get(asker, OrderedDict())
        dropped = answers.pop(pod, None)
        if not answers:
            self._kept.pop(asker, None)
        if dropped is not None:
            self._count(asker, -dropped.size_bytes)

    def _count(self, asker: str, size_bytes: int) -> None:
        """Add to the bytes of *asker*, and forget it if nothing is left."""
        network = client_network(asker)
        askers = self._bytes.setdefault(network, Counter())
        askers[asker] += size_bytes
        self._size_bytes += size_bytes
        if not askers[asker]:
            del askers[asker]
        if not askers:
            del self._bytes[network]


def explain(
    decision: ScoreRecord, ledger: Ledger, source: str, most_nodes: int | None = None
) -> Mapping[str, Any]:
    """Return each node's score with its reason, best first. Leave out those above *most_nodes*."""
    demand, bound = decision.demand, ledger.find_pod(decision.demand.pod)
    best_first = sorted(decision.scores, key=lambda score: (-score.points, score.node))
    return {
        "pod": demand.pod,
        "tier": str(demand.tier),
        "tier_reason": demand.tier_reason,
        "is_system": demand.is_system,
        "cpu_millis": demand.millis,
        "source": source,
        "asked_by": decision.asker or None,
        "at": datetime.fromtimestamp(decision.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "bound_to": bound[0] if bound else None,
        "nodes": explained_nodes(best_first[:most_nodes], ledger),
        "nodes_left_out": len(best_first) - len(best_first[:most_nodes]),
    }


def explained_nodes(scores: Sequence[Score], ledger: Ledger) -> list[Mapping[str, Any]]:
    """Return each score with its inputs and the problems of its node."""
    return [
        {
            "node": score.node,
            "points": round(score.points, 2),
            "score": score.extender_score,
            "rule": score.rule,
            "reason": score.reason,
            "inputs": dict(score.inputs),
            "problems": list(facts.problems) if (facts := ledger.facts(score.node)) else [],
        }
        for score in scores
    ]
