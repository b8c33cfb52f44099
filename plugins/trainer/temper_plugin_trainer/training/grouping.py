"""Groups the threads of a bundle by name and behaviour, and tells what they do."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from attrs import frozen

from temper_plugin_trainer.name_families import name_family
from temper_plugin_trainer.training.bundles import Bundle, BundleEdge, BundleThread
from temper_plugin_trainer.training.classes import (
    SURE,
    Behaviour,
    Classed,
    ThreadClass,
    Waking,
    classify,
)
from temper_plugin_trainer.training.name_promises import contradiction

BRIEF_S = 1.0
"""Seconds below which the threads of a family are judged together."""
FOLLOWS_SHARE = 0.05
"""Share of a family's CPU time below which threads of another class follow the family's."""
TOLD_SHARE = 0.01
"""Share of the CPU time from which a group that contradicts its name, or is unclear, is told."""
WAITED_SHARE = 0.5
OUTSIDE, INTERRUPT = "other programs", "interrupts"


class FamilyKey(NamedTuple):
    """Threads of one container and family of process names with one family of names."""

    container: str
    process: str
    family: str

    @property
    def names(self) -> tuple[str, str]:
        """Both families of names, which are all that a match on names can tell."""
        return self.process, self.family


@frozen
class TrainedGroup:
    """Threads of one family that do the same. ``cpus`` is what they used together, on average.

    ``behaviour`` has the sums of the counters of those that have the class by themselves, so its
    rates are means per thread. ``contradicts``
    tells how the behaviour contradicts the name, empty if it does not. ``tids`` are its threads.
    """

    key: FamilyKey
    kind: ThreadClass
    confidence: float
    why: str
    doubt: str
    cpus: float
    behaviour: Behaviour
    tids: tuple[int, ...]
    names: tuple[str, ...]
    contradicts: str = ""

    @property
    def label(self) -> str:
        """The family, with its process if that has another name."""
        process, family = self.key.process, self.key.family
        return family if family == process else f"{process}/{family}"


@frozen
class GroupEdge:
    """Wake-ups per second from one group to another, by their positions in the analysis.

    A waker below 0 is outside of the program: ``OUTSIDE_OF`` names it.
    """

    waker: int
    wakee: int
    per_s: float


OUTSIDE_OF: Mapping[int, str] = {-1: OUTSIDE, -2: INTERRUPT}


@frozen
class Analysis:
    """The groups of a bundle, the busiest first, with their wake-ups and what could not be told."""

    groups: tuple[TrainedGroup, ...]
    edges: tuple[GroupEdge, ...]
    untold: tuple[str, ...]
    remarks: tuple[str, ...]


class _Member(NamedTuple):
    threads: Sequence[BundleThread]
    behaviour: Behaviour
    classed: Classed


def analyse(bundle: Bundle) -> Analysis:
    """Group the threads of *bundle*."""
    waking = _waking(bundle.agent.wakes.edges)
    families: defaultdict[FamilyKey, list[BundleThread]] = defaultdict(list)
    for thread in bundle.threads:
        families[family_of(thread)].append(thread)
    groups = [
        group
        for key, threads in families.items()
        for group in _groups(key, _members(threads, waking), bundle)
    ]
    groups.sort(key=lambda group: (-group.cpus, group.key, group.kind))
    return Analysis(
        tuple(groups),
        _edges(groups, bundle),
        tuple(_unknowns(groups, bundle)),
        tuple(_remarks(groups)),
    )


def family_of(thread: BundleThread) -> FamilyKey:
    """Return the family that *thread* belongs to."""
    return FamilyKey(thread.container, name_family(thread.process), name_family(thread.comm))


def _waking(edges: Sequence[BundleEdge]) -> Mapping[int, Waking]:
    wakes, within = Counter[int](), Counter[int]()
    for edge in edges:
        wakes[edge.wakee] += edge.wakes
        within[edge.wakee] += edge.wakes if edge.waker_inside else 0
    return {tid: Waking(number, within[tid]) for tid, number in wakes.items()}


def _members(threads: Sequence[BundleThread], waking: Mapping[int, Waking]) -> Iterator[_Member]:
    """Classify each thread of a family. Its short-lived threads are judged as one."""
    brief = [thread for thread in threads if thread.lived_s < BRIEF_S]
    alone = [[thread] for thread in threads if thread.lived_s >= BRIEF_S]
    for each in [*alone, brief] if brief else alone:
        behaviour = _behaviour(each, waking)
        yield _Member(each, behaviour, classify(behaviour))


def _behaviour(threads: Sequence[BundleThread], waking: Mapping[int, Waking]) -> Behaviour:
    sleeps_in, wakes = Counter[str](), [waking.get(thread.tid, Waking()) for thread in threads]
    for thread in threads:
        sleeps_in.update(thread.sleeps_in)
    return Behaviour(
        lived_s=sum(thread.lived_s for thread in threads),
        run_s=sum(thread.run_s for thread in threads),
        wait_s=sum(thread.wait_s for thread in threads),
        sleeps=sum(thread.sleeps for thread in threads),
        peak=max(thread.peak for thread in threads),
        sleeps_in=dict(sleeps_in),
        waking=Waking(sum(each.wakes for each in wakes), sum(each.inside for each in wakes)),
    )


def _groups(key: FamilyKey, members: Iterator[_Member], bundle: Bundle) -> Iterator[TrainedGroup]:
    """Divide a family by class. Threads with little of its CPU time follow the others."""
    by_class: defaultdict[ThreadClass, list[_Member]] = defaultdict(list)
    for member in members:
        by_class[member.classed.kind].append(member)
    sums = {kind: sum(each.behaviour.run_s for each in of) for kind, of in by_class.items()}
    total, main = sum(sums.values()), max(sums, key=lambda kind: sums[kind])
    for kind in [kind for kind in sums if kind is not main]:
        if sums[kind] < FOLLOWS_SHARE * total:
            by_class[main] += by_class.pop(kind)
    waking = _waking(bundle.agent.wakes.edges)
    for kind, of in by_class.items():
        yield _group(key, kind, of, bundle, waking)


def _group(
    key: FamilyKey,
    kind: ThreadClass,
    members: Sequence[_Member],
    bundle: Bundle,
    waking: Mapping[int, Waking],
) -> TrainedGroup:
    own = [member for member in members if member.classed.kind is kind]
    busiest = max(own, key=lambda member: member.behaviour.run_s)
    weights = [member.behaviour.run_s or 1e-9 for member in own]
    pairs = zip(weights, own, strict=True)
    confidence = sum(weight * member.classed.confidence for weight, member in pairs) / sum(weights)
    threads = [thread for member in members for thread in member.threads]
    behaviour = _behaviour([thread for member in own for thread in member.threads], waking)
    return TrainedGroup(
        key=key,
        kind=kind,
        confidence=round(confidence, 2),
        why=busiest.classed.why,
        doubt=busiest.classed.doubt,
        cpus=sum(thread.run_s for thread in threads) / bundle.seconds,
        behaviour=behaviour,
        tids=tuple(thread.tid for thread in threads),
        names=tuple(dict.fromkeys(thread.comm for thread in threads)),
        contradicts=contradiction(key.family, kind) if confidence >= SURE else "",
    )


def _edges(groups: Sequence[TrainedGroup], bundle: Bundle) -> tuple[GroupEdge, ...]:
    wakes = bundle.agent.wakes
    places = {tid: place for place, group in enumerate(groups) for tid in group.tids}
    sums = Counter[tuple[int, int]]()
    for edge in wakes.edges:
        if edge.wakee in places:
            outside = -1 if edge.waker else -2
            sums[places.get(edge.waker, outside), places[edge.wakee]] += edge.wakes
    watched_s = wakes.watched_s or 1.0
    return tuple(GroupEdge(*pair, number / watched_s) for pair, number in sums.most_common())


def _unknowns(groups: Sequence[TrainedGroup], bundle: Bundle) -> Iterator[str]:
    """Yield the limits of the bundle, and the groups whose class is unclear."""
    total = sum(group.cpus for group in groups)
    yield from (f"the load was not representative: {problem}" for problem in bundle.problems)
    yield from _unknown_wakes(bundle)
    yield from _unknown_cpus(bundle, total)
    for group in groups:
        if group.confidence < SURE and group.cpus >= TOLD_SHARE * total:
            reason = group.doubt or "near a threshold"
            yield f"unclear: {group.label} ({group.kind}, {group.confidence:.2f}): {reason}"


def _unknown_wakes(bundle: Bundle) -> Iterator[str]:
    wakes = bundle.agent.wakes
    if not wakes.windows:
        why = f" ({wakes.reason})" if wakes.reason else ""
        yield f"wake-ups were not observed{why}: wait channels tell chains, less surely"
    if wakes.lost:
        yield f"{wakes.lost} edges of wake-ups found no room"


def _unknown_cpus(bundle: Bundle, total: float) -> Iterator[str]:
    """Yield CPU time that was waited for, or that no thread of the *total* CPUs used."""
    waited = sum(thread.wait_s for thread in bundle.threads)
    runnable = waited + sum(thread.run_s for thread in bundle.threads)
    if waited and waited / runnable > WAITED_SHARE:
        share = 100 * waited / runnable
        yield f"CPUs were short: threads waited for {share:.0f} % of their runnable time"
    if bundle.unseen_cpus >= TOLD_SHARE * (total + bundle.unseen_cpus) > 0:
        yield f"{bundle.unseen_cpus:.2f} CPUs were used by threads too short-lived to be seen"
    if bundle.left_out:
        cpus = f"{bundle.left_out_cpus:.2f} CPUs"
        yield f"{bundle.left_out} threads have no record, {cpus} used"


def _remarks(groups: Sequence[TrainedGroup]) -> Iterator[str]:
    """Yield names that mislead: a contradicting behaviour, and one family with several."""
    total = sum(group.cpus for group in groups)
    for group in groups:
        if group.contradicts and group.cpus >= TOLD_SHARE * total:
            yield f"misleading name: {group.label} is {group.kind}, but {group.contradicts}"
    families: defaultdict[FamilyKey, list[TrainedGroup]] = defaultdict(list)
    for group in groups:
        families[group.key].append(group)
    for several in families.values():
        if len(several) > 1:
            parts = ", ".join(f"{len(group.tids)} {group.kind}" for group in several)
            yield f"one name, several behaviours: {several[0].label}: {parts}"
