"""The known plans: the wanted one, the last that worked, and the problems of the wanted one."""

import json
from functools import lru_cache

from attrs import evolve, field, frozen

from temper_core.records.plans import Generation, LayerPlan
from temper_core.scheduler.failure.diagnosis import Diagnosis, EndKind


@frozen
class Candidate:
    """A submitted plan. ``problem`` is why it must not be used, empty if it may.

    ``is_checked`` is false while no engine was found whose limits it could be checked against.
    """

    plan: LayerPlan
    config: str = field(repr=False)
    problem: str = ""
    is_checked: bool = True


class PlanBook:
    """Keeps the wanted plan and the last good one, and numbers the started generations."""

    def __init__(self) -> None:
        self.wanted: Candidate | None = None
        self.good: Generation | None = None
        self._last_number = 0
        self._postponed_until: float | None = None
        self._why_postponed = ""

    @property
    def problem(self) -> str:
        """Why the wanted plan is not the one that should run, empty if it is."""
        if self.wanted is None:
            return ""
        return self.wanted.problem or (self._why_postponed if self._is_postponed else "")

    @property
    def _is_postponed(self) -> bool:
        """Whether the last good plan replaces a different wanted one for a while."""
        if self._postponed_until is None or self.wanted is None or self.good is None:
            return False
        return not same(self.good.config, self.wanted.config)

    def submit(self, candidate: Candidate) -> bool:
        """Set the wanted plan. Return whether its configuration differs from the last one."""
        is_same = self.wanted is not None and same(self.wanted.config, candidate.config)
        if self.wanted is not None and is_same:
            candidate = evolve(self.wanted, plan=candidate.plan)
        self.wanted = candidate
        if self.good is not None and same(self.good.config, candidate.config):
            self.good = evolve(self.good, plan=candidate.plan)
        return not is_same

    def target(self) -> Generation | None:
        """Return the generation that should run: the wanted plan, or the last good one.

        The last good plan runs if the wanted one has a problem or the same configuration.
        """
        if self.wanted is None:
            return None
        if self.problem or (self.good and same(self.good.config, self.wanted.config)):
            return self.good
        return Generation(self._last_number + 1, self.wanted.plan, self.wanted.config)

    def started(self, generation: Generation) -> None:
        """Record that *generation* was given to an engine, so that its number is used up."""
        self._last_number = max(self._last_number, generation.number)

    def proven(self, generation: Generation) -> None:
        """Record that *generation* attached. A later failure falls back to it."""
        self.good = generation

    def refused(self, problem: str) -> None:
        """Record that the wanted plan breaks a rule of the engine."""
        if self.wanted is not None:
            self.wanted = evolve(self.wanted, problem=problem)

    def accepted(self) -> None:
        """Record that the wanted plan was checked and keeps the engine's rules."""
        if self.wanted is not None:
            self.wanted = evolve(self.wanted, is_checked=True)

    def failed(self, generation: Generation, diagnosis: Diagnosis) -> bool:
        """Record that *generation* did not attach. Return whether another may be tried at once.

        The last good plan gets one try without a wait. A plan that caused the failure is not tried
        again before it changes. If another scheduler attached first, no other plan would succeed.
        """
        if self.wanted is None or (self.good and same(self.good.config, generation.config)):
            return False
        if diagnosis.kind is EndKind.FOREIGN_SCHEDULER:
            return False
        if diagnosis.blames_the_plan and same(self.wanted.config, generation.config):
            self.refused(did_not_attach(generation, diagnosis))
        return self.good is not None

    def postpone(self, why: str, until: float) -> None:
        """Use the last good plan up to the moment *until*, because of *why*.

        This holds for plans submitted meanwhile too, because the machine may be the cause.
        """
        self._postponed_until = until
        self._why_postponed = why

    def look_at_clock(self, now: float) -> None:
        """End a postponement that is over at *now*."""
        if self._postponed_until is not None and now >= self._postponed_until:
            self._postponed_until = None

    def forgive(self) -> None:
        """Clear the problems of the wanted plan, as an operator requested."""
        self._postponed_until = None
        if self.wanted is not None:
            self.wanted = evolve(self.wanted, problem="", is_checked=False)


def did_not_attach(generation: Generation, diagnosis: Diagnosis) -> str:
    """Return the message that *generation* did not attach, with the reason."""
    return f"generation {generation.number} did not attach: {diagnosis.summary}"


def same(config: str, other: str) -> bool:
    """Return whether two configurations are equal but for the order of keys."""
    return config == other or _canonical(config) == _canonical(other)


@lru_cache(maxsize=8)
def _canonical(config: str) -> str:
    try:
        return json.dumps(json.loads(config), sort_keys=True)
    except ValueError:
        return config
