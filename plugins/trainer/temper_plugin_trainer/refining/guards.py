"""Guard rails: what ends a trial, compared with the node as the baseline has it."""

from collections import Counter

from attrs import define, field

from temper_plugin_trainer.refining.trial_door import ENFORCING, SAFE_MODE, Look

LOOKS_IN_A_ROW = 2
"""Observations of an arm in a row that have a violation, or in which others wait too long, before a
trial ends.

An observation has the CPU on which a thread was seen last. So a violation may be of a moment.
"""
MOST_NAMED = 3


@define
class Guards:
    """Looks at the node. It learns from the baseline, and judges the other arms.

    Attributes:
        mode: The mode in which the run began. Any other ends a trial.
        more_waits: CPUs that other pods may wait for more than they did in the baseline.

    """

    mode: str
    more_waits: float
    known: set[str] = field(factory=set)
    most_waits: float = 0.0
    _late: Counter[str] = field(factory=Counter, init=False)
    """By arm, the observations in a row in which others wait too long."""
    _added: dict[str, Counter[str]] = field(factory=dict, init=False)
    """By arm, the violations that the baseline did not have, with their observations in a row."""
    _last: str = field(default="", init=False)

    def learn(self, look: Look) -> None:
        """Take *look* as the node in its usual state."""
        self.known |= look.violations
        self.most_waits = max(self.most_waits, look.waits)

    def wanted(self, *, is_stock: bool) -> str:
        """Return the mode that the agent has to be in."""
        return SAFE_MODE if is_stock and self.mode == ENFORCING else self.mode

    def judged(self, look: Look, arm: str, *, is_stock: bool = False) -> str:
        """Return why a trial ends after *look*, with *arm* in force. Empty if it may go on."""
        wanted = self.wanted(is_stock=is_stock)
        is_reloading = wanted == ENFORCING and look.mode == "reloading"
        if look.mode != wanted and not is_reloading:
            return f"the agent is in {look.mode} ({look.why}), no longer in {wanted}"
        if look.at == self._last:
            return ""
        self._last = look.at
        return self._of_violations(look, arm) or self._of_waits(look, arm)

    def _of_violations(self, look: Look, arm: str) -> str:
        before = self._added.pop(arm, Counter())
        seen = Counter({name: before[name] + 1 for name in look.violations - self.known})
        if lasting := sorted(name for name in seen if seen[name] >= LOOKS_IN_A_ROW):
            return f"violation: {', '.join(lasting[:MOST_NAMED])}"
        self._added[arm] = seen
        return ""

    def _of_waits(self, look: Look, arm: str) -> str:
        limit = self.most_waits + self.more_waits
        self._late[arm] = self._late[arm] + 1 if look.waits > limit else 0
        if self._late[arm] < LOOKS_IN_A_ROW:
            return ""
        self._late[arm] = 0
        return (
            f"other pods wait for {look.waits:.2f} CPUs, and for at most {self.most_waits:.2f} "
            "with the tier alone"
        )
