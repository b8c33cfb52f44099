"""Which plans there are: the one that is wanted, the last that worked, and what is wrong."""

import json
from functools import lru_cache

from attrs import evolve, field, frozen

from temper_core.records.plans import Generation, LayerPlan
from temper_core.scheduler.failure.diagnosis import Diagnosis, EndKind


@frozen
class Candidate:
    """A plan that was asked for. ``problem`` says why it is not to be used.

    ``is_checked`` is false while no engine was found whose limits it could be held against.
    """

    plan: LayerPlan
    config: str = field(repr=False)
    problem: str = ""
    is_checked: bool = True


class PlanBook:
    """Keeps the wanted plan and the last good one apart, and numbers what is started."""

    def __init__(self) -> None:
        self.wanted: Candidate | None = None
        self.good: Generation | None = None
        self._last_number = 0
        self._postponed_until: float | None = None
        self._why_postponed = ""

    @property
    def problem(self) -> str:
        """Why the wanted plan is not the one that should run. Empty where it is."""
        if self.wanted is None:
            return ""
        return self.wanted.problem or (self._why_postponed if self._is_postponed else "")

    @property
    def _is_postponed(self) -> bool:
        """Whether the last good plan stands in for the wanted one, another, for a while."""
        if self._postponed_until is None or self.wanted is None or self.good is None:
            return False
        return not same(self.good.config, self.wanted.config)

    def submit(self, candidate: Candidate) -> bool:
        """Want another plan. Return whether it differs for the engine from the last one."""
        is_same = self.wanted is not None and same(self.wanted.config, candidate.config)
        if self.wanted is not None and is_same:
            candidate = evolve(self.wanted, plan=candidate.plan)
        self.wanted = candidate
        if self.good is not None and same(self.good.config, candidate.config):
            self.good = evolve(self.good, plan=candidate.plan)
        return not is_same

    def target(self) -> Generation | None:
        """Return what should run: the wanted plan, or the last good one where that has a problem.

        A wanted plan that the engine cannot tell from the good one *is* the good one.
        """
        if self.wanted is None:
            return None
        if self.problem or (self.good and same(self.good.config, self.wanted.config)):
            return self.good
        return Generation(self._last_number + 1, self.wanted.plan, self.wanted.config)

    def started(self, generation: Generation) -> None:
        """Note that *generation* was given to an engine: its number is used up."""
        self._last_number = max(self._last_number, generation.number)

    def proven(self, generation: Generation) -> None:
        """Note that *generation* attached: it is what a later failure falls back to."""
        self.good = generation

    def refused(self, problem: str) -> None:
        """Note that the wanted plan breaks a rule of the engine."""
        if self.wanted is not None:
            self.wanted = evolve(self.wanted, problem=problem)

    def accepted(self) -> None:
        """Note that the wanted plan was held against the engine's rules and keeps them."""
        if self.wanted is not None:
            self.wanted = evolve(self.wanted, is_checked=True)

    def failed(self, generation: Generation, diagnosis: Diagnosis) -> bool:
        """Note that *generation* did not attach. Return whether another may be tried at once.

        The last good plan gets one try without a wait. A plan that is to blame itself is not
        tried again before it changes. Where another scheduler came first, no plan is better.
        """
        if self.wanted is None or (self.good and same(self.good.config, generation.config)):
            return False
        if diagnosis.kind is EndKind.FOREIGN_SCHEDULER:
            return False
        if diagnosis.blames_the_plan and same(self.wanted.config, generation.config):
            self.refused(did_not_attach(generation, diagnosis))
        return self.good is not None

    def postpone(self, why: str, until: float) -> None:
        """Let the last good plan stand in until then, because of *why*.

        That holds for whatever is wanted meanwhile too: its cause may well be the machine's.
        """
        self._postponed_until = until
        self._why_postponed = why

    def look_at_clock(self, now: float) -> None:
        """End the postponement that is over by *now*."""
        if self._postponed_until is not None and now >= self._postponed_until:
            self._postponed_until = None

    def forgive(self) -> None:
        """Give the wanted plan another chance, as an operator asks for."""
        self._postponed_until = None
        if self.wanted is not None:
            self.wanted = evolve(self.wanted, problem="", is_checked=False)


def did_not_attach(generation: Generation, diagnosis: Diagnosis) -> str:
    """Say that *generation* did not, and why."""
    return f"generation {generation.number} did not attach: {diagnosis.summary}"


def same(config: str, other: str) -> bool:
    """Return whether two configurations say the same. The order of keys says nothing."""
    return config == other or _canonical(config) == _canonical(other)


@lru_cache(maxsize=8)
def _canonical(config: str) -> str:
    try:
        return json.dumps(json.loads(config), sort_keys=True)
    except ValueError:
        return config
