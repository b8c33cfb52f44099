"""How long to watch, and how long to rest after it, so that watching stays within its budget."""

from attrs import frozen

AIM_CPU_RATIO = 0.000_5
"""Share of one core that watching may cost, if the budget of observing leaves as much."""
LEAST_S = 0.02
"""Shorter windows say little: a thread that runs every 20 ms is seen once."""
MOST_S = 1.0
USUAL_EVERY_S = 20.0
SOONEST_S = 5.0
LATEST_S = 120.0
FIRST_COST_NS = 400.0
"""Cost of a switch with its wake-up, until it has been measured. ``bench/wakes.py`` has 350."""
FIRST_FIXED_S = 0.004
"""Cost of attaching, reading and naming, until it has been measured."""
LEAST_COST_NS = 50.0
NS_PER_S = 1_000_000_000


@frozen
class WindowPlan:
    """A window of ``length_s`` and what it should cost. ``length_s`` is 0 where there can be none.

    ``every_s`` is the time from its beginning to the next one's, ``reason`` why there is none.
    """

    length_s: float
    every_s: float = 0.0
    reason: str = ""


class WakePace:
    """Chooses windows from the rate of switches, and learns from each what they cost."""

    def __init__(self) -> None:
        self._cost_ns = FIRST_COST_NS
        self._fixed_s = FIRST_FIXED_S

    @property
    def cost_ns(self) -> float:
        """What one switch, with its part of the wake-ups, was last seen to cost."""
        return self._cost_ns

    def share(self, left_cpu_ratio: float) -> float:
        """Return the share of a core for windows where observing leaves *left_cpu_ratio*."""
        return min(AIM_CPU_RATIO, max(0.0, left_cpu_ratio))

    def plan(self, switches_per_s: float, share: float) -> WindowPlan:
        """Choose the longest window whose cost *share* pays for in ``USUAL_EVERY_S``.

        Where reading and naming are dear, counting gets as much as they, and windows come less
        often. So they do where ``LEAST_S`` costs more. Less often than every ``LATEST_S`` there
        are none.
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
        """Return after how long, from beginning to beginning, a window of *cost_s* is paid for."""
        return max(SOONEST_S, cost_s / share)

    def learn(self, switches: int, kernel_s: float, fixed_s: float) -> None:
        """Take in what a window cost: *kernel_s* for counting, *fixed_s* for all the rest."""
        self._fixed_s = fixed_s
        if switches:
            self._cost_ns = max(LEAST_COST_NS, kernel_s / switches * NS_PER_S)
