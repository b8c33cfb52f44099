"""The share of a pod's CPU time in threads that a match of its profile covers."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from attrs import define, field

from temper_core.observe.places import remember
from temper_core.plan.groups import layer_name
from temper_core.profiles.covering import candidates, takes_at_birth, takes_by_name
from temper_core.profiles.fingerprints import containers_of
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.snapshots import PodSample, ThreadSample
from temper_core.records.steering import OPEN
from temper_core.records.thread_groups import ThreadGroup, Treatment
from temper_core.records.threads import ThreadIdentity

MOST_VERDICTS = 256
"""Cached verdicts per pod. A look lists no more threads, or few more, one by one."""
MOST_UNDECIDED = 0.1
"""Most undecided CPU time, as a share of the pod's, with which the covered share is reported."""

PodName = tuple[str, str]


@define
class _Shares:
    """CPUs used by the threads of one pod: covered by a match, not covered, and undecided."""

    covered: float = 0.0
    left: float = 0.0
    undecided: float = 0.0

    def ratio(self) -> float | None:
        """Return the covered share, or None if nothing ran or too much of it is undecided."""
        decided = self.covered + self.left
        if not decided or self.undecided > MOST_UNDECIDED * (decided + self.undecided):
            return None
        return self.covered / decided


@define(eq=False)
class ProfileCoverage:
    """Judges the threads of profiled pods. Verdicts are cached until the plan changes."""

    _plan: LayerPlan | None = field(default=None, init=False)
    _pods: dict[PodName, "_Judge"] = field(factory=dict, init=False)

    def of(
        self,
        plan: LayerPlan | None,
        threads: Iterable[ThreadSample],
        pods: Iterable[PodSample] = (),
    ) -> Mapping[PodName, float]:
        """Return the covered share by (namespace, pod), for pods where it is known.

        *pods* have the CPU time of threads that were too short-lived to be among *threads*.
        """
        self._follow(plan)
        if not self._pods:
            return {}
        shares: defaultdict[PodName, _Shares] = defaultdict(_Shares)
        for thread in threads:
            key = thread.namespace, thread.pod
            judge = self._pods.get(key)
            if judge is not None and judge.is_about(thread):
                _add(shares[key], judge.is_covered(thread), thread.cpu_used)
        for pod in pods:
            judge = self._pods.get((pod.namespace, pod.pod))
            if judge is not None and pod.short_lived_cpu_used > 0:
                shares_of_pod = shares[pod.namespace, pod.pod]
                _add(shares_of_pod, judge.is_unseen_covered, pod.short_lived_cpu_used)
        ratios = {key: pod_shares.ratio() for key, pod_shares in shares.items()}
        return {key: ratio for key, ratio in ratios.items() if ratio is not None}

    def _follow(self, plan: LayerPlan | None) -> None:
        if plan is self._plan:
            return
        self._plan = plan
        assignments = plan.assignments if plan is not None else ()
        self._pods = {
            (assignment.pod.namespace, assignment.pod.name): _Judge(assignment, plan)
            for assignment in assignments
            if plan is not None and assignment.profile is not None
        }


def _add(shares: _Shares, is_covered: bool | None, cpus: float) -> None:
    if is_covered is None:
        shares.undecided += cpus
    elif is_covered:
        shares.covered += cpus
    else:
        shares.left += cpus


class _Judge:
    """Judges whether a match of the profile covers a thread, for one pod."""

    def __init__(self, assignment: Assignment, plan: LayerPlan) -> None:
        loaded, pod = assignment.profile, assignment.pod
        self._groups = loaded.profile.thread_groups if loaded else ()
        containers = containers_of(pod, loaded.profile.fingerprint) if loaded else ()
        self._containers = {container.name for container in containers}
        self._homes = {
            group.name: _home(group, assignment, plan)
            for group in self._groups
            if loaded is not None
        }
        rest = [self._homes[group.name] for group in self._groups if not group.match]
        self._rest = rest[0] if rest else _tier_home(assignment, plan)
        self._is_steered = plan.is_steered
        matches = [match for group in self._groups for match in group.match]
        is_whole_pod = len(containers) == len(pod.containers)
        is_at_birth = any(match.is_static for match in matches)
        # The names of these threads are unknown. User space had no time to decide about them.
        self.is_unseen_covered = None if is_at_birth or not is_whole_pod else False
        self._known: dict[tuple[str, str, bool], tuple[bool, bool | None]] = {}

    def is_about(self, thread: ThreadSample) -> bool:
        """Whether the profile applies to the thread's container. An unknown container counts."""
        return not thread.container or thread.container in self._containers

    def is_covered(self, thread: ThreadSample) -> bool | None:
        """Whether a match covers the thread, or None if that is not known.

        Prefixes of names cover it from its start. A decision of user space covers it once it is
        made, which short-lived threads do not live to see, and never in a static plan.
        """
        key = thread.comm, thread.process, thread.tid == thread.tgid
        if key not in self._known:
            identity = _identity(thread)
            verdicts = (
                takes_at_birth(self._groups, identity),
                takes_by_name(self._groups, identity),
            )
            remember(self._known, key, verdicts, MOST_VERDICTS)
        is_at_birth, by_name = self._known[key]
        if is_at_birth or by_name is False or not self._is_steered:
            return is_at_birth
        by_place = self._by_place(thread)
        # A group whose layer is also that of the rest shows no place of its own.
        return by_place is not False if by_name else by_place

    def _by_place(self, thread: ThreadSample) -> bool | None:
        """Judge by the thread's layer, which steering chose by more than its name."""
        if thread.expected_layer != thread.hinted_layer:
            return None
        placement = {
            self._homes[group.name] for group in candidates(self._groups, _identity(thread))
        }
        if thread.expected_layer in placement:
            return True if thread.expected_layer != self._rest else None
        return False if thread.expected_layer == self._rest else None


def _identity(thread: ThreadSample) -> ThreadIdentity:
    is_leader = thread.tid == thread.tgid
    return ThreadIdentity(thread.cgroup, thread.comm, thread.process, is_leader=is_leader)


def _home(group: ThreadGroup, assignment: Assignment, plan: LayerPlan) -> str:
    profile = assignment.profile
    name = layer_name(profile.profile.id if profile else "", group.name, assignment.tier)
    if plan.layer_named(name) is not None:
        return name
    if group.treatment is Treatment.YIELD:
        return OPEN
    return _tier_home(assignment, plan)


def _tier_home(assignment: Assignment, plan: LayerPlan) -> str:
    tier = assignment.tier.value
    return tier if plan.layer_named(tier) is not None else OPEN
