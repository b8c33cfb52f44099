"""Explanations of scores for operators: the score of each node, its inputs and its reason."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from temper_plugin_density.placement.asking import PodWish
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.scoring import Score

MOST_SCORES_KEPT = 50_000
ANSWERED = "what the scheduler was answered"
RECKONED = "reckoned now"
RECKONED_AGAIN = "reckoned now, as if another such pod came"


@frozen
class ScoreRecord:
    """The answer for a pod, and its time in seconds since the epoch."""

    wish: PodWish
    scores: tuple[Score, ...]
    at: float


class Decisions:
    """The latest answers by pod, at most MOST_SCORES_KEPT scores in all."""

    def __init__(self, most_scores: int = MOST_SCORES_KEPT) -> None:
        self._most_scores = most_scores
        self._kept: OrderedDict[str, ScoreRecord] = OrderedDict()
        self._scores = 0

    def keep(self, decision: ScoreRecord) -> None:
        """Keep an answer. Drop the oldest ones above the limit."""
        self._drop(decision.wish.pod)
        self._kept[decision.wish.pod] = decision
        self._scores += _weight(decision)
        while self._scores > self._most_scores and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def of(self, pod: str) -> ScoreRecord | None:
        """Return the last answer for the pod with that namespace/name."""
        return self._kept.get(pod)

    def _drop(self, pod: str) -> None:
        dropped = self._kept.pop(pod, None)
        self._scores -= _weight(dropped) if dropped else 0


def _weight(decision: ScoreRecord) -> int:
    # An answer without scores takes memory too.
    return 1 + len(decision.scores)


def explain(decision: ScoreRecord, ledger: Ledger, source: str) -> Mapping[str, Any]:
    """Return every node's score with its reason, best first."""
    wish, bound = decision.wish, ledger.find_pod(decision.wish.pod)
    best_first = sorted(decision.scores, key=lambda score: (-score.points, score.node))
    return {
        "pod": wish.pod,
        "tier": str(wish.tier),
        "tier_reason": wish.tier_reason,
        "is_system": wish.is_system,
        "cpu_millis": wish.millis,
        "source": source,
        "at": datetime.fromtimestamp(decision.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "bound_to": bound[0] if bound else None,
        "nodes": explained_nodes(best_first, ledger),
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
