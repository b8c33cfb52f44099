"""Adapts the observation period: it grows while observation costs too much, and shrinks again."""

from collections import deque

from temper_core.settings.models import LONGEST_PERIOD_S

TICKS_JUDGED = 3
COME_BACK_BELOW = 0.8
"""The period is halved if the cost would stay below this share of the budget. Avoids flapping."""


class ObservationPace:
    """The period in force, doubled or halved from the cost of the last ticks."""

    def __init__(self, period_s: float, budget_cpu_ratio: float) -> None:
        self.period_s = period_s
        self._wanted_s = period_s
        self._budget = budget_cpu_ratio
        self._costs: deque[float] = deque(maxlen=TICKS_JUDGED)
        self._usual_s = 0.0

    def note(self, cpu_s: float) -> None:
        """Record the cost of one tick. A single expensive tick does not change the period."""
        self._costs.append(cpu_s)
        if len(self._costs) < TICKS_JUDGED:
            return
        self._usual_s = sorted(self._costs)[TICKS_JUDGED // 2]  # the median
        if self.cost_ratio > self._budget and self.period_s < LONGEST_PERIOD_S:
            self._change(min(LONGEST_PERIOD_S, self.period_s * 2))
        elif self.period_s > self._wanted_s:
            shorter = max(self._wanted_s, self.period_s / 2)
            if self._usual_s / shorter < self._budget * COME_BACK_BELOW:
                self._change(shorter)

    @property
    def cost_ratio(self) -> float:
        """Cost of the median tick at the current period, as a share of one core."""
        return self._usual_s / self.period_s

    @property
    def stretched(self) -> str:
        """Why the period is longer, or the cost higher, than configured, else an empty string."""
        if self.period_s <= self._wanted_s and self.cost_ratio <= self._budget:
            return ""
        cost, budget = f"{self.cost_ratio:.2%} of a core", f"{self._budget:.2%}"
        configured, now = f"{self._wanted_s:g} s", f"{self.period_s:g} s"
        return f"observation costs {cost} (budget {budget}): every {now}, not {configured}"

    @property
    def defects(self) -> tuple[str, ...]:
        """``stretched`` as a defect."""
        return (f"observe: {self.stretched}",) if self.stretched else ()

    def _change(self, period_s: float) -> None:
        self.period_s = period_s
        self._costs.clear()
