"""Observes this node as the agent does, without a running agent. Changes nothing."""

import math
from typing import Any

from temper_core.decide.decider import Decider
from temper_core.node import builtin_plugin
from temper_core.node.cgroups import detect_cgroups
from temper_core.node.pod_watch import open_pod_source
from temper_core.node.topology import read_machine
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.observer import Observer
from temper_core.plugin_host import load_host
from temper_core.profiles.watch import ProfileWatch
from temper_core.records.contributions import PodSourceContext
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import Mode, Snapshot, Status
from temper_core.rehearsal.recording_format import recording_document
from temper_core.settings.models import Settings

STATUS = Status(Mode.OBSERVE_ONLY, "recording", "there was no agent to ask")


class LocalNode:
    """The observing parts of an agent, and the plan that it would have made.

    Raises InputError or MachineError if the node lacks something that the settings require.
    """

    def __init__(self, settings: Settings) -> None:
        machine = read_machine()
        node = settings.node_name
        context = PodSourceContext(settings.pods, settings.workloads, machine, node=node)
        self._settings = settings
        self._host = load_host(settings, extra={builtin_plugin.NAME: builtin_plugin})
        self._profiles = ProfileWatch(settings, self._host, longest_s=math.inf)
        self._pods = open_pod_source(self._host, settings.pods.source, context)
        self._decider = Decider(settings, machine, self._host, self._profiles.catalogue)
        self._plan: LayerPlan | None = None
        mounts = detect_cgroups()
        roots = CgroupRoots.of(mounts.unified, mounts.v1)
        self._observer = Observer(machine, settings, node=node, cgroup_roots=roots)
        self._looked()  # the baseline, which has no rates

    @property
    def period_s(self) -> float:
        """Seconds between two looks."""
        return self._observer.period_s

    def look(self) -> dict[str, Any]:
        """Look once, and return the parts of a recording."""
        snapshot = self._looked()
        return recording_document(snapshot, self._settings, self._profiles.catalogue)

    def close(self) -> None:
        """Close the observer and the pod source."""
        self._observer.close()
        self._pods.close()

    def _looked(self) -> Snapshot:
        self._decide()
        return self._observer.tick(plan=self._plan, status=STATUS, plugins=self._host.states())

    def _decide(self) -> None:
        if self._profiles.look():
            self._decider.follow(self._profiles.catalogue)
        if self._pods.look() or self._plan is None or self._decider.is_unfinished:
            self._plan = self._decider.decide(self._pods.pods).wanted
