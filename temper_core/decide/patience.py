"""The waiting time of reasons for another engine that are not urgent and may flap."""

from collections.abc import Iterable

from attrs import evolve

from temper_core.plan.change import Reason, ReasonCode
from temper_core.records.plans import LayerPlan
from temper_core.records.tiers import Tier

Key = tuple[str, str]


class Patience:
    """Makes a reason that is not urgent wait *after_s* seconds. All times are arguments.

    A thread group's layer that was removed less than *after_s* ago is not urgent: its cores come
    and go with other pods, and its threads can run in the layer of their tier.
    """

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._since: dict[Key, float] = {}
        self._in_force: frozenset[str] = frozenset()
        self._given_up: dict[str, float] = {}

    def weigh(
        self, in_force: LayerPlan, reasons: Iterable[Reason], now: float
    ) -> tuple[Reason, ...]:
        """Return *reasons* with their urgency, and record the start of those that are not urgent.

        The wait of a reason that is missing from *reasons* starts anew next time.
        """
        self._follow(in_force, now)
        weighed = tuple(self._weighed(reason) for reason in reasons)
        keys = {(reason.code, reason.layer) for reason in weighed if not reason.is_urgent}
        self._since = {key: self._since.get(key, now) for key in keys}
        return weighed

    def forget(self) -> None:
        """Start all waits anew, because no engine runs."""
        self._since.clear()

    def due_at(self) -> float | None:
        """Return the moment from which the oldest reason counts, None without a reason."""
        return min(self._since.values()) + self._after_s if self._since else None

    def is_over(self, now: float) -> bool:
        """Whether any reason has waited long enough at *now*."""
        moment = self.due_at()
        return moment is not None and moment <= now

    def _follow(self, in_force: LayerPlan, now: float) -> None:
        names = frozenset(layer.name for layer in in_force.layers)
        self._given_up.update(dict.fromkeys(self._in_force - names, now))
        recent = now - self._after_s
        self._given_up = {name: at for name, at in self._given_up.items() if at > recent}
        self._in_force = names

    def _weighed(self, reason: Reason) -> Reason:
        is_group = reason.layer not in {tier.value for tier in Tier}
        if reason.code is not ReasonCode.MISSING or not is_group:
            return reason
        return evolve(reason, is_urgent=reason.layer not in self._given_up)
