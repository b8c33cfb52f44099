"""Keeps the WorkloadProfiles of the cluster: by hints at once, then by metrics."""

import threading
import time
from collections.abc import Callable

import structlog
from attrs import define, frozen

from temper_core import MachineError
from temper_kube.backoff import Backoff
from temper_kube.bounded_warnings import BoundedWarnings
from temper_kube.failures import ForbiddenError, NotFoundError, RefusalError
from temper_plugin_power.controller.hysteresis import Candidate, decide, is_told_by_hints
from temper_plugin_power.controller.known_objects import KnownObjects
from temper_plugin_power.controller.pod_table import PodTable, in_scope
from temper_plugin_power.controller.pods import KnownPod
from temper_plugin_power.controller.profile_writing import ProfileWriter
from temper_plugin_power.controller.stored_profiles import StoredProfile
from temper_plugin_power.measuring.measuring import Measured
from temper_plugin_power.measuring.readings import with_measures
from temper_plugin_power.workloads.deriving import Derived
from temper_plugin_power.workloads.owners import Workload
from temper_plugin_power.workloads.profiling import (
    ProfilingChoices,
    WorkloadProfile,
    profile_of,
    profile_workloads,
)

FIRST_SERVER_ERROR = 500
CLASSIFIED, HINTS_ONLY, MANUAL, FAILED = "classified", "hints_only", "manual", "failed"
RESULTS = (CLASSIFIED, HINTS_ONLY, MANUAL, FAILED)
MOST_URGENT = 4
"""Workloads with new or changed pods in a row, while others are due. A tenant may change pods as
fast as they are handled."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Timing:
    """When workloads are classified, in seconds."""

    reclassify_s: float = 900.0
    window_s: int = 600
    clock: Callable[[], float] = time.monotonic


@frozen
class Cluster:
    """The known state of the cluster. *nodes* returns the names of the nodes in scope."""

    pods: PodTable
    profiles: KnownObjects[StoredProfile]
    nodes: Callable[[], frozenset[str]]


@define
class Progress:
    """How far the classification of a workload is."""

    settled_at: float | None = None
    candidate: Candidate | None = None


class Classifier:
    """Work that one thread does, one workload at a time. Other threads add to it.

    Of five workloads four are those of new pods, so that a cycle over many workloads delays no hint
    for long, and no flood of new pods keeps the others from a cycle.
    """

    def __init__(
        self,
        cluster: Cluster,
        writer: ProfileWriter,
        choices: ProfilingChoices,
        timing: Timing,
        counted: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._writer = writer
        self._choices = choices
        self._timing = timing
        self._counted = counted
        self._latest: dict[Workload, WorkloadProfile] = {}
        self._progress: dict[Workload, Progress] = {}
        self._urgent: dict[Workload, None] = {}
        self._due: dict[Workload, None] = {}
        self._in_a_row = 0
        self._added = threading.Condition()
        self._backoff = Backoff()
        self._warnings = BoundedWarnings()

    def note(self, workload: Workload) -> None:
        """Add a workload whose pods are new or have changed."""
        with self._added:
            self._urgent[workload] = None
            self._added.notify()

    def note_all(self) -> None:
        """Add every workload that has no profile yet. Call it once the cluster is known."""
        for workload in self._in_scope():
            if self._stored(workload) is None:
                self.note(workload)

    def measured(self, measured: Measured | None) -> None:
        """Begin a cycle with the readings of the metrics, None if they could not be had."""
        if measured is not None:
            self._latest = self._profiles(measured)
        now = self._timing.clock()
        workloads = self._in_scope()
        self._progress = {each: self._progress.get(each, Progress()) for each in workloads}
        due = [each for each in workloads if self._is_due(self._progress[each], now)]
        with self._added:
            self._due.update(dict.fromkeys(due))
            self._added.notify()

    def needs_metrics(self) -> bool:
        """Whether any workload is due."""
        now = self._timing.clock()
        progress = (self._progress.get(each, Progress()) for each in self._in_scope())
        return any(self._is_due(each, now) for each in progress)

    def step(self, wait_s: float) -> float:
        """Handle one workload, waiting for one for *wait_s*. Return the pause that is needed then.

        A pause is needed while the API server does not answer. The workload is kept.
        """
        with self._added:
            if not (self._urgent or self._due):
                self._added.wait(wait_s)
            is_urgent = bool(self._urgent) and not (self._due and self._in_a_row >= MOST_URGENT)
            queue = self._urgent if is_urgent else self._due
            if not queue:
                return 0.0
            self._in_a_row = self._in_a_row + 1 if is_urgent else 0
            workload = next(iter(queue))
            del queue[workload]
        try:
            self._handle(workload, is_urgent=is_urgent)
        except MachineError as error:
            return self._failed(workload, error)
        self._backoff.forget()
        return 0.0

    def _in_scope(self) -> list[Workload]:
        """Return the workloads that have profiles. None while no node is known."""
        nodes, skipped = self._cluster.nodes(), self._choices.skipped
        pods = self._cluster.pods.all() if nodes else ()
        return list(dict.fromkeys(pod.workload for pod in pods if in_scope(pod, nodes, skipped)))

    def _handle(self, workload: Workload, *, is_urgent: bool) -> None:
        nodes, skipped = self._cluster.nodes(), self._choices.skipped
        pods = [
            pod
            for pod in self._cluster.pods.of(workload)
            if nodes and in_scope(pod, nodes, skipped)
        ]
        if not pods:
            return
        stored, fresh = self._stored(workload), self._fresh(workload, pods)
        if is_urgent and stored is not None and is_told_by_hints(stored, fresh.profile):
            self._writer.place(stored, fresh.node)
            return
        progress = self._progress.setdefault(workload, Progress())
        now = self._timing.clock()
        decision = decide(stored, fresh, progress.candidate, now, self._timing.window_s)
        if decision.is_written:
            self._writer.write(fresh, stored, pods)
        progress.candidate = decision.candidate
        progress.settled_at = now if decision.is_settled else None
        self._count(stored, fresh)

    def _fresh(self, workload: Workload, pods: list[KnownPod]) -> WorkloadProfile:
        """Return the profile by the newest hints and the last metrics."""
        measured = [pod.measured for pod in pods]
        latest = self._latest.get(workload)
        derived = (
            Derived(None, {"pods": len(pods)})
            if latest is None
            else Derived(latest.signals, latest.evidence)
        )
        return profile_of(workload, measured, derived, self._choices)

    def _profiles(self, measured: Measured) -> dict[Workload, WorkloadProfile]:
        nodes = self._cluster.nodes()
        pods = [
            pod.measured
            for pod in self._cluster.pods.all()
            if in_scope(pod, nodes, self._choices.skipped)
        ]
        profiles = profile_workloads(
            with_measures(pods, measured.measures),
            dialect=measured.dialect,
            window_s=self._timing.window_s,
            choices=self._choices,
        )
        return {profile.workload: profile for profile in profiles}

    def _stored(self, workload: Workload) -> StoredProfile | None:
        return self._cluster.profiles.find(workload.namespace, workload.object_name)

    def _is_due(self, progress: Progress, now: float) -> bool:
        settled_at = progress.settled_at
        return settled_at is None or now - settled_at >= self._timing.reclassify_s

    def _count(self, stored: StoredProfile | None, fresh: WorkloadProfile) -> None:
        if stored is not None and stored.is_manual:
            self._counted(MANUAL)
        else:
            self._counted(HINTS_ONLY if fresh.signals is None else CLASSIFIED)

    def _failed(self, workload: Workload, error: MachineError) -> float:
        """Count a failure. Return the pause if the API server is away, and keep the workload."""
        self._counted(FAILED)
        is_refused = isinstance(error, (ForbiddenError, NotFoundError)) or (
            isinstance(error, RefusalError) and error.status < FIRST_SERVER_ERROR
        )
        if self._warnings.allows(workload.namespace if is_refused else None):
            named = f"{workload.namespace}/{workload.object_name}"
            log.warning("profile_not_written", profile=named, reason=str(error)[:300])
        if is_refused:
            return 0.0
        with self._added:
            # At the end, since a server may be away for the requests of this workload only.
            self._urgent[workload] = None
        return self._backoff.failed()
