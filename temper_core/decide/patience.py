"""The waiting time of reasons for another engine that are not urgent and may flap."""

from collections.abc import Iterable

from attrs import evolve

from temper_core.plan.change import Reason, ReasonCode
from temper_core.records.plans import LayerPlan
from temper_core.records.tiers import Tier

Key = tuple[ReasonCode, str]

RECOVER_AFTER_S = 60.0
HOUR_S = 3600.0


class Patience:
    """Makes a reason that is not urgent wait *after_s* seconds. All times are arguments.

    A demotion is undone sooner: after ``RECOVER_AFTER_S``, and after twice as long for each one
    that was undone in the last hour. So the fence is back soon after the pod that took it, and
    pods that come and go do not use up the reloads of the hour.

    A thread group's layer that was removed less than *after_s* ago is not urgent: its cores come
    and go with other pods, and its threads can run in the layer of their tier.
    """

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._since: dict[Key, float] = {}
        self._in_force: frozenset[str] = frozenset()
        self._demoted: frozenset[str] = frozenset()
        self._recovered: list[float] = []
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
        moments = (at + self._wait_s(code) for (code, _), at in self._since.items())
        return min(moments, default=None)

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
        demoted = frozenset(layer.name for layer in in_force.layers if layer.demoted)
        self._recovered = [at for at in self._recovered if at > now - HOUR_S]
        if self._demoted & names - demoted:
            self._recovered.append(now)
        self._demoted = demoted

    def _wait_s(self, code: ReasonCode) -> float:
        if code is not ReasonCode.RECOVERY:
            return self._after_s
        return min(self._after_s, RECOVER_AFTER_S * 2.0 ** len(self._recovered))

    def _weighed(self, reason: Reason) -> Reason:
        is_group = reason.layer not in {tier.value for tier in Tier}
        if reason.code is not ReasonCode.MISSING or not is_group:
            return reason
        return evolve(reason, is_urgent=reason.layer not in self._given_up)
