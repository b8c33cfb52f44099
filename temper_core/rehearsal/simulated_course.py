"""The plans of a simulated node. Each is decided with the layers of the previous one in force."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attrs import define, field, frozen

from temper_core.decide.decider import Decider, PlanDecision
from temper_core.plan import ProfileCatalogue
from temper_core.plan.change import PlanChange
from temper_core.plugin_host import PluginHost
from temper_core.profiles.files import ProfileFiles
from temper_core.profiles.loading import catalogue_of
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.profiles import LoadedProfile, ProfileFailure
from temper_core.records.snapshots import Mode
from temper_core.rehearsal.reader import RecordedMoment
from temper_core.settings.models import Settings

MOST_ROUNDS = 20
"""Retries of an unfinished decision. All detectors share a deadline that a slow machine misses."""
WITH_ENGINE = (Mode.ENFORCING, Mode.RELOADING)


@frozen
class Step:
    """A change to another set of pods or profiles, ``at_s`` seconds after the first look."""

    at_s: float
    pods: int
    change: PlanChange


@frozen
class DecisionBasis:
    """The inputs of a decision. ``has_engine`` is true if layers were in force."""

    pods: tuple[Pod, ...]
    catalogue: ProfileCatalogue
    steered: bool
    has_engine: bool


@define(eq=False)
class SimulatedDecisions:
    """Decides for the pods of each moment as the node's agent would have.

    If an engine ran, the first plan succeeds the recorded one, and each step has the kind of its
    change. Without an engine the agent decides each time without a previous plan, and so does
    ``plan``. The steps are then those that an engine would have taken.
    """

    settings: Settings
    machine: MachineShape
    host: PluginHost
    steered: bool = False
    profiles: Path | None = None
    plan: LayerPlan | None = None
    steps: list[Step] = field(factory=list)
    _in_force: LayerPlan | None = None
    _decider: Decider | None = None
    _from_nothing: Decider | None = None
    _basis: DecisionBasis | None = None
    _again_at: float | None = None
    _files: tuple[LoadedProfile | ProfileFailure, ...] | None = None

    def follow(self, moment: RecordedMoment, at_s: float) -> None:
        """Decide if pods or profiles have changed, or a deferred change is due."""
        snapshot = moment.snapshot
        if snapshot.plan is None:
            return
        basis = DecisionBasis(
            tuple(assignment.pod for assignment in snapshot.plan.assignments),
            self._catalogue(moment.catalogue),
            self._is_steered(snapshot.plan),
            snapshot.status.mode in WITH_ENGINE,
        )
        is_new = basis != self._basis
        if not is_new and (self._again_at is None or snapshot.monotonic_s < self._again_at):
            return
        if self._in_force is None and basis.has_engine:
            self._in_force = snapshot.plan
        self._basis = basis
        decision = self._decided(basis, snapshot.monotonic_s)
        if is_new or decision.change.kind.needs_engine:
            self.steps.append(Step(at_s, len(basis.pods), decision.change))
        self._in_force, self._again_at = decision.wanted, decision.again_at
        self.plan = decision.by_now if basis.has_engine else self._plan_from_nothing(basis)

    def _decided(self, basis: DecisionBasis, now: float) -> PlanDecision:
        self._decider = self._following(self._decider, basis.catalogue)
        return self._patiently(self._decider, basis, self._in_force, now)

    def _plan_from_nothing(self, basis: DecisionBasis) -> LayerPlan:
        self._from_nothing = self._following(self._from_nothing, basis.catalogue)
        return self._patiently(self._from_nothing, basis, None, 0.0).wanted

    def _patiently(
        self, decider: Decider, basis: DecisionBasis, in_force: LayerPlan | None, now: float
    ) -> PlanDecision:
        can_swap = self.settings.scheduler.warm_swap
        decide = partial(decider.decide, basis.pods, in_force, steered=basis.steered)
        decision = decide(can_swap=can_swap, now=now)
        for _ in range(MOST_ROUNDS):
            if not decider.is_unfinished:
                break
            decision = decide(can_swap=can_swap, now=now)
        return decision

    def _following(self, decider: Decider | None, catalogue: ProfileCatalogue) -> Decider:
        if decider is None:
            return Decider(self.settings, self.machine, self.host, catalogue)
        if decider.catalogue != catalogue:
            decider.follow(catalogue)
        return decider

    def _is_steered(self, recorded: LayerPlan) -> bool:
        wants_hints = self.steered or recorded.is_steered
        return wants_hints and self.settings.scheduler.steering != "static"

    def _catalogue(self, recorded: ProfileCatalogue) -> ProfileCatalogue:
        """Return the recorded profiles, with profile files replaced by those in ``profiles``."""
        if self.profiles is None:
            return recorded
        if self._files is None:
            self._files = tuple(ProfileFiles(self.profiles).look())
        shipped: Sequence[LoadedProfile] = [
            profile for profile in recorded.profiles if not profile.is_file
        ]
        return catalogue_of((*self._files, *shipped), self.settings.profiles.enable)
