"""When a changed plan may reach the engine: debounced, spaced, and budgeted by the hour."""

from collections import deque

HOUR_S = 3600.0
LONGEST_WAIT_IN_QUIETS = 5


class ReloadPolicy:
    """Decides when a pending change becomes a reload. All times are arguments, in seconds.

    A reload is the start of another engine, by a warm swap or a cold restart. Each counts against
    the hour's budget, even if it fails. Steering by hints takes none of the budget.

    A reload waits for *quiet_s* without a further change, but not for ever: at most five quiet
    periods, or *min_interval_s* if that is longer.
    """

    def __init__(self, quiet_s: float, min_interval_s: float, reloads_per_hour: int) -> None:
        self._quiet_s = quiet_s
        self._min_interval_s = min_interval_s
        self._patience_s = max(LONGEST_WAIT_IN_QUIETS * quiet_s, min_interval_s)
        self._reloads: deque[float] = deque(maxlen=reloads_per_hour)
        self._first_change: float | None = None
        self._last_change: float | None = None

    def changed(self, now: float) -> None:
        """Record that another plan is wanted."""
        self._first_change = now if self._first_change is None else self._first_change
        self._last_change = now

    def settled(self) -> None:
        """Record that the wanted plan is in force."""
        self._first_change = self._last_change = None

    def reloaded(self, now: float) -> None:
        """Record that another engine is being started, warm or cold."""
        self._reloads.append(now)
        self.settled()

    def due_at(self) -> float | None:
        """Return the moment from which a reload is due, None while no change is pending."""
        if self._first_change is None or self._last_change is None:
            return None
        quiet = min(self._last_change + self._quiet_s, self._first_change + self._patience_s)
        return max(quiet, self._earliest())

    def why_later(self, now: float) -> str:
        """Return what a pending change waits for at *now*, empty if a reload is due."""
        moment = self.due_at()
        if moment is None or moment <= now:
            return ""
        if self._earliest() < moment:
            return f"waiting {moment - now:.0f} s for the pods to fall quiet"
        if self._budget_free_at() < moment:
            apart = f"{self._min_interval_s:g} s apart"
            return f"waiting {moment - now:.0f} s: reloads are at least {apart}"
        return (
            f"all {self._reloads.maxlen} reloads of an hour are used up; "
            f"the next is possible in {moment - now:.0f} s"
        )

    def _earliest(self) -> float:
        """Return when spacing and budget allow the next reload."""
        if not self._reloads:
            return float("-inf")
        return max(self._reloads[-1] + self._min_interval_s, self._budget_free_at())

    def _budget_free_at(self) -> float:
        """Return when the last hour has room for another reload."""
        if len(self._reloads) < (self._reloads.maxlen or 0):
            return float("-inf")
        return self._reloads[0] + HOUR_S
