"""From pods to the plan that the node should have, with what plugins know about workloads."""

import time
from collections.abc import Iterable

from temper_core.errors import PluginError
from temper_core.plan import ProfileCatalogue, decide
from temper_core.plugin_host import Contribution, PluginHost
from temper_core.records.contributions import Detection, Detector
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.pods import Pod
from temper_core.settings.models import Settings


class Decider:
    """Decides for one node; asks each detector once per pod and change of the pod."""

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
        self.is_unfinished = False

    def decide(self, pods: Iterable[Pod]) -> LayerPlan:
        """Return the plan for *pods*.

        All detectors together have one deadline; pods that they could not be shown count as not
        detected, ``is_unfinished`` says so, and the next call goes on with them.
        """
        present = tuple(pods)
        self._latest = time.monotonic() + self._settings.plugin_host.deadline_s
        self.is_unfinished = False
        plan = decide(present, self.catalogue, self._machine, self._settings, self._detect)
        uids = {pod.uid for pod in present}
        self._known = {uid: known for uid, known in self._known.items() if uid in uids}
        return plan

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
        """Return the surest detection; of equal ones the detector that comes first by name."""
        found = [
            (-detection.confidence, contribution.record.name, detection)
            for contribution in self._detectors
            if (detection := self._ask_one(contribution, pod)) is not None
        ]
        return min(found, key=lambda entry: entry[:2])[2] if found else None

    def _ask_one(self, contribution: Contribution[Detector], pod: Pod) -> Detection | None:
        try:
            return self._host.call(contribution.plugin, contribution.record.detect, pod)
        except PluginError:
            # Counted and told by the host; this detector has no opinion on the pod.
            return None
