"""Guard rails: what ends a trial, compared with the node as the baseline has it."""

from attrs import define, field

from temper_plugin_trainer.refining.trial_door import ENFORCING, SAFE_MODE, Look

LOOKS_IN_A_ROW = 2
"""Observations in a row in which others wait too long, before a trial ends."""
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
    _late: int = field(default=0, init=False)
    _last: str = field(default="", init=False)

    def learn(self, look: Look) -> None:
        """Take *look* as the node in its usual state."""
        self.known |= look.violations
        self.most_waits = max(self.most_waits, look.waits)

    def wanted(self, *, is_stock: bool) -> str:
        """Return the mode that the agent has to be in."""
        return SAFE_MODE if is_stock and self.mode == ENFORCING else self.mode

    def judged(self, look: Look, *, is_stock: bool = False) -> str:
        """Return why a trial ends after *look*. Empty if it may go on."""
        wanted = self.wanted(is_stock=is_stock)
        is_reloading = wanted == ENFORCING and look.mode == "reloading"
        if look.mode != wanted and not is_reloading:
            return f"the agent is in {look.mode} ({look.why}), no longer in {wanted}"
        if added := sorted(look.violations - self.known):
            return f"violation: {', '.join(added[:MOST_NAMED])}"
        return self._of_waits(look)

    def _of_waits(self, look: Look) -> str:
        if look.at == self._last:
            return ""
        self._last = look.at
        limit = self.most_waits + self.more_waits
        self._late = self._late + 1 if look.waits > limit else 0
        if self._late < LOOKS_IN_A_ROW:
            return ""
        self._late = 0
        return (
            f"other pods wait for {look.waits:.2f} CPUs, and for at most {self.most_waits:.2f} "
            "with the tier alone"
        )
