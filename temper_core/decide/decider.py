"""The decision from pods to the node's plan, with the plugins' detections of workloads."""

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
    """The plan for the pods, and the change to it from the plan in force.

    ``wanted`` is for the scheduler. It has the layers in force as long as they suffice. ``held``
    is the best plan for the layers in force if ``wanted`` needs others. Threads are steered by it
    meanwhile. ``again_at`` is the moment from which the same pods may need another engine, because
    a reason that is not urgent has then lasted long enough. It is None without such a reason.
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
    """Decides for one node. Calls each detector once per pod and change of the pod."""

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
        """Decide by *catalogue* from now on, and drop the conclusions from the former one.

        Detectors are not called again: their detections depend on the pods alone, and pods would
        lose their profiles until all detectors had answered.
        """
        if catalogue.profiles != self.catalogue.profiles:
            self._patience = Patience(self._settings.plan.shrink_after_s)
        self.catalogue = catalogue
        self.is_unfinished = True

    def ask_again(self) -> None:
        """Gather the detectors of plugins that have not answered yet, and call all anew."""
        self._detectors = self._host.gather_again("temper_detectors", Detector)
        self._known.clear()
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
        """Decide for *pods*. *in_force* is the plan of the running engine, None without one.

        *steered* means that threads can be given hints, *can_swap* that the next engine may load
        beside the old one. *now* is in seconds of any clock that never goes back.

        All detectors together have one deadline. Pods left after it count as not detected, and
        the next call continues with them. ``is_unfinished`` is then true. It is also true from a
        change of the catalogue to the next decision.
        """
        assignments = self._assigned(tuple(pods))
        if in_force is not None:
            # First, so that no returning layer takes the hint of a layer in force.
            self._hints = {**in_force.hints, **self._hints, **in_force.hints}
        fresh = self._compiled(assignments, Steering(self._hints) if steered else None)
        if in_force is None:
            self._patience.forget()
            return PlanDecision(fresh, change_between(None, fresh, can_swap=can_swap))
        held_plan = self._held(assignments, in_force, fresh)
        return self._chosen(in_force, fresh, held_plan, now, can_swap=can_swap)

    def _assigned(self, present: Sequence[Pod]) -> tuple[Assignment, ...]:
        self._latest = time.monotonic() + self._settings.plugin_host.deadline_s
        self.is_unfinished = False
        assignments = assign(present, self.catalogue, self._machine, self._settings, self._detect)
        uids = {pod.uid for pod in present}
        self._known = {uid: detection for uid, detection in self._known.items() if uid in uids}
        return assignments

    def _compiled(self, assignments: Sequence[Assignment], steering: Steering | None) -> LayerPlan:
        plan = compile_plan(assignments, self._machine, self._settings, steering=steering)
        self._hints.update(plan.hints)
        return plan

    def _held(
        self, assignments: Sequence[Assignment], in_force: LayerPlan, fresh: LayerPlan
    ) -> LayerPlan | None:
        """Compile for the layers in force, None if hints do not suffice or nothing differs."""
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
        """Choose a new engine if it is urgent or has been needed for long enough."""
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
        cached = self._known.get(pod.uid)
        if cached is not None and cached[0] == pod:
            return cached[1]
        if time.monotonic() > self._latest:
            self.is_unfinished = True
            return None
        detection = self._ask(pod)
        self._known[pod.uid] = (pod, detection)
        return detection

    def _ask(self, pod: Pod) -> Detection | None:
        """Return the detection of highest confidence, of equal ones the first by detector name."""
        detections = [
            (-detection.confidence, contribution.record.name, detection)
            for contribution in self._detectors
            if (detection := self._ask_one(contribution, pod)) is not None
        ]
        return min(detections, key=lambda entry: entry[:2])[2] if detections else None

    def _ask_one(self, contribution: Contribution[Detector], pod: Pod) -> Detection | None:
        try:
            detector = contribution.record
            part = f"detector {detector.name}"
            return self._host.call(contribution.plugin, detector.detect, pod, part=part)
        except PluginError:
            # The host counts and logs it. The detector counts as having no detection.
            return None
