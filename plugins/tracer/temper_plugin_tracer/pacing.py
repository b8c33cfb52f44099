"""The length and period of windows that keep watching within its budget."""

from attrs import frozen

AIM_CPU_RATIO = 0.000_5
"""Share of one core that watching may cost, if the observing budget leaves as much."""
LEAST_S = 0.02
"""A thread that runs every 20 ms is seen once in a window of this length."""
MOST_S = 1.0
USUAL_EVERY_S = 20.0
SOONEST_S = 5.0
LATEST_S = 120.0
FIRST_COST_NS = 400.0
"""Initial cost of a switch with its wake-up. ``bench/wakes.py`` measured 350."""
FIRST_FIXED_S = 0.004
"""Initial cost of attaching, reading and naming."""
LEAST_COST_NS = 50.0
NS_PER_S = 1_000_000_000


@frozen
class WindowPlan:
    """A window of ``length_s``, 0 if there can be none for ``reason``.

    ``every_s`` is the time from its beginning to the next one's.
    """

    length_s: float
    every_s: float = 0.0
    reason: str = ""


class WakePace:
    """Chooses windows from the rate of switches and the measured cost of earlier windows."""

    def __init__(self) -> None:
        self._cost_ns = FIRST_COST_NS
        self._fixed_s = FIRST_FIXED_S

    @property
    def cost_ns(self) -> float:
        """The last measured cost of a switch with its part of the wake-ups."""
        return self._cost_ns

    def share(self, left_cpu_ratio: float) -> float:
        """Return the share of a core for windows if observing leaves *left_cpu_ratio*."""
        return min(AIM_CPU_RATIO, max(0.0, left_cpu_ratio))

    def plan(self, switches_per_s: float, share: float) -> WindowPlan:
        """Choose the longest window whose cost *share* pays for in ``USUAL_EVERY_S``.

        If reading and naming are expensive, counting gets as much as they cost, and windows are
        less frequent. The same holds if a window of ``LEAST_S`` costs more. There are none if the
        period would exceed ``LATEST_S``.
        """
        if share <= 0:
            return WindowPlan(0.0, reason="nothing is left of the budget ([observe] budget)")
        cost_per_s = switches_per_s * self._cost_ns / NS_PER_S
        payable_s = max(
            share * USUAL_EVERY_S - self._fixed_s,
            min(self._fixed_s, share * LATEST_S - self._fixed_s),
        )
        longest_s = payable_s / cost_per_s if cost_per_s else MOST_S
        length_s = min(MOST_S, max(LEAST_S, longest_s))
        every_s = self.every_s(self._fixed_s + cost_per_s * length_s, share)
        if every_s > LATEST_S:
            return WindowPlan(
                0.0,
                reason=f"at {switches_per_s:.0f} switches per second even {LEAST_S * 1e3:.0f} ms "
                f"would cost more than {share:.3%} of a core leaves in {LATEST_S:.0f} s",
            )
        return WindowPlan(length_s, every_s)

    def every_s(self, cost_s: float, share: float) -> float:
        """Return the period, from beginning to beginning, of windows that cost *cost_s*."""
        return max(SOONEST_S, cost_s / share)

    def learn(self, switches: int, kernel_s: float, fixed_s: float) -> None:
        """Record the cost of a window: *kernel_s* for counting, *fixed_s* for all the rest."""
        self._fixed_s = fixed_s
        if switches:
            self._cost_ns = max(LEAST_COST_NS, kernel_s / switches * NS_PER_S)
