"""Which reasons for another engine have stood for long enough, and which are only flapping."""

from collections.abc import Iterable

from attrs import evolve

from temper_core.plan.change import Reason, ReasonCode
from temper_core.records.plans import LayerPlan
from temper_core.records.tiers import Tier

Key = tuple[str, str]


class Patience:
    """Waits *after_s* seconds before a reason that is not urgent counts. Told every moment.

    A thread group's layer that was given up less than that ago is not urgent: the cores that it
    took come and go with other pods, and its threads are well in the layer of their tier.
    """

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._since: dict[Key, float] = {}
        self._in_force: frozenset[str] = frozenset()
        self._given_up: dict[str, float] = {}

    def weigh(
        self, in_force: LayerPlan, reasons: Iterable[Reason], now: float
    ) -> tuple[Reason, ...]:
        """Return *reasons* as urgent as they are, and note since when the others stand.

        A reason that is not among them any more starts anew next time.
        """
        self._follow(in_force, now)
        weighed = tuple(self._weighed(reason) for reason in reasons)
        keys = {(reason.code, reason.layer) for reason in weighed if not reason.is_urgent}
        self._since = {key: self._since.get(key, now) for key in keys}
        return weighed

    def forget(self) -> None:
        """Let all that stands start anew: no engine runs, as between two of them."""
        self._since.clear()

    def due_at(self) -> float | None:
        """Return from when on the oldest reason counts; None while there is none."""
        return min(self._since.values()) + self._after_s if self._since else None

    def is_over(self, now: float) -> bool:
        """Whether any reason has stood for long enough at *now*."""
        due = self.due_at()
        return due is not None and due <= now

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
