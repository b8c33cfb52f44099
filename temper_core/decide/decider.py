"""From pods to the plan that the node should have, with what plugins know about workloads."""

import time
from collections.abc import Iterable, Sequence

from attrs import frozen

from temper_core.decide.patience import Patience
from temper_core.errors import PluginError
from temper_core.plan import ProfileCatalogue, assign, compile_plan
from temper_core.plan.change import PlanChange, change_between, misfits, same_layers
from temper_core.plugin_host import Contribution, PluginHost
from temper_core.records.contributions import Detection, Detector
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.steering import FIXED_HINTS, Steering
from temper_core.settings.models import Settings


@frozen
class PlanDecision:
    """What the pods call for, and how to get there from the plan in force.

    ``wanted`` is for the scheduler: as long as the layers in force do, it has exactly these.
    ``held`` is the best plan for the layers in force where ``wanted`` needs others. Threads are
    steered by it meanwhile. ``again_at`` is from when on the same pods may call for another
    engine, because what is not urgent will have stood for long enough; None where nothing stands.
    """

    wanted: LayerPlan
    change: PlanChange
    held: LayerPlan | None = None
    again_at: float | None = None

    @property
    def by_now(self) -> LayerPlan:
        """The plan to steer by until the wanted one is in force."""
        return self.held or self.wanted


class Decider:
    """Decides for one node. Asks each detector once per pod and change of the pod."""

    def __init__(
        self,
        settings: Settings,
        machine: MachineShape,
        host: PluginHost,
        catalogue: ProfileCatalogue,
    ) -> None:
        self.catalogue = catalogue
        self._settings = settings
        self._machine = machine
        self._host = host
        self._detectors = host.gather("temper_detectors", Detector)
        self._known: dict[str, tuple[Pod, Detection | None]] = {}
        self._latest = 0.0
        self._hints = dict(FIXED_HINTS)
        self._patience = Patience(settings.plan.shrink_after_s)
        self.is_unfinished = False

    def follow(self, catalogue: ProfileCatalogue) -> None:
        """Decide by *catalogue* from now on. What was concluded from the former is forgotten.

        Detectors are not asked again: what they said is about the pods alone, and until all had
        answered, pods would lose their profiles.
        """
        if catalogue.profiles != self.catalogue.profiles:
            self._patience = Patience(self._settings.plan.shrink_after_s)
        self.catalogue = catalogue
        self.is_unfinished = True

    def decide(
        self,
        pods: Iterable[Pod],
        in_force: LayerPlan | None = None,
        *,
        steered: bool = False,
        can_swap: bool = True,
        now: float = 0.0,
    ) -> PlanDecision:
        """Decide for *pods*, where *in_force* is the plan of the engine that runs, None for none.

        *steered* says that threads can be given hints, *can_swap* that the next engine may load
        beside the old one, *now* is a moment in seconds of any clock that never goes back.

        All detectors together have one deadline. Pods that they could not be shown count as not
        detected, ``is_unfinished`` says so, and the next call goes on with them. So it does while
        nothing has been decided by another catalogue yet.
        """
        assignments = self._assigned(tuple(pods))
        if in_force is not None:
            # First, so that no layer that comes back takes the number of one in force.
            self._hints = {**in_force.hints, **self._hints, **in_force.hints}
        fresh = self._compiled(assignments, Steering(self._hints) if steered else None)
        if in_force is None:
            self._patience.forget()
            return PlanDecision(fresh, change_between(None, fresh, can_swap=can_swap))
        held = self._held(assignments, in_force, fresh)
        return self._chosen(in_force, fresh, held, now, can_swap=can_swap)

    def _assigned(self, present: Sequence[Pod]) -> tuple[Assignment, ...]:
        self._latest = time.monotonic() + self._settings.plugin_host.deadline_s
        self.is_unfinished = False
        assignments = assign(present, self.catalogue, self._machine, self._settings, self._detect)
        uids = {pod.uid for pod in present}
        self._known = {uid: known for uid, known in self._known.items() if uid in uids}
        return assignments

    def _compiled(self, assignments: Sequence[Assignment], steering: Steering | None) -> LayerPlan:
        plan = compile_plan(assignments, self._machine, self._settings, steering=steering)
        self._hints.update(plan.hints)
        return plan

    def _held(
        self, assignments: Sequence[Assignment], in_force: LayerPlan, fresh: LayerPlan
    ) -> LayerPlan | None:
        """Compile for the layers in force; None where hints alone cannot do, or nothing differs."""
        is_steered = in_force.is_steered and fresh.is_steered
        if not is_steered or in_force.machine != fresh.machine or same_layers(in_force, fresh):
            return None
        return self._compiled(assignments, Steering(self._hints, in_force.layers, hold=True))

    def _chosen(
        self,
        in_force: LayerPlan,
        fresh: LayerPlan,
        held: LayerPlan | None,
        now: float,
        *,
        can_swap: bool,
    ) -> PlanDecision:
        """Want a new engine where it is urgent or has been called for long enough."""
        slack = self._settings.plan.headroom_cores * len(self._machine.siblings[0])
        reasons = self._patience.weigh(in_force, misfits(in_force, fresh, slack), now)
        change = change_between(
            in_force,
            fresh,
            can_swap=can_swap,
            held=held,
            reasons=reasons,
            is_due=self._patience.is_over(now),
        )
        if held is None or change.kind.needs_engine:
            return PlanDecision(fresh, change, held)
        return PlanDecision(held, change, again_at=self._patience.due_at())

    def _detect(self, pod: Pod) -> Detection | None:
        known = self._known.get(pod.uid)
        if known is not None and known[0] == pod:
            return known[1]
        if time.monotonic() > self._latest:
            self.is_unfinished = True
            return None
        found = self._ask(pod)
        self._known[pod.uid] = (pod, found)
        return found

    def _ask(self, pod: Pod) -> Detection | None:
        """Return the surest detection. Of equal ones the detector that comes first by name."""
        found = [
            (-detection.confidence, contribution.record.name, detection)
            for contribution in self._detectors
            if (detection := self._ask_one(contribution, pod)) is not None
        ]
        return min(found, key=lambda entry: entry[:2])[2] if found else None

    def _ask_one(self, contribution: Contribution[Detector], pod: Pod) -> Detection | None:
        try:
            detector = contribution.record
            part = f"detector {detector.name}"
            return self._host.call(contribution.plugin, detector.detect, pod, part=part)
        except PluginError:
            # Counted and told by the host. This detector has no opinion on the pod.
            return None
