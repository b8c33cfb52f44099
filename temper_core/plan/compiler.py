"""Compile assignments into the layers of a plan."""

from collections.abc import Container, Iterable, Iterator, Sequence

from attrs import evolve, frozen

from temper_core.plan.addresses import Located, locate
from temper_core.plan.blocks import Draft, system_draft
from temper_core.plan.capacity import Capacity
from temper_core.plan.conditions import Goal
from temper_core.plan.drafting import Excess, Sketch, excess, over_layer_limit, sketch
from temper_core.plan.groups import Crew, crews_of, wishes_of
from temper_core.plan.layers import build_layers
from temper_core.plan.ordering import in_pod_order
from temper_core.plan.process_names import rooms, with_room
from temper_core.plan.rounds import SIZED_BY_REQUESTS, SYSTEM
from temper_core.plan.shares import Shares, share_out
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan, Note
from temper_core.records.tiers import LayerKind
from temper_core.settings import Settings


def compile_plan(
    assignments: Iterable[Assignment], machine: MachineShape, settings: Settings
) -> LayerPlan:
    """Compile a plan that the engine takes, on any machine and for any number of pods.

    Pure, and blind to the order of *assignments*: equal input gives an equal plan.
    """
    ordered = in_pod_order(assignments, lambda assignment: assignment.pod)
    capacity = Capacity.of(machine, settings.plan.reserve_cores)
    draft, dropped = system_draft(settings.plan)
    pods, notes = with_room(
        [locate(assignment, settings.pods.cgroup_driver) for assignment in ordered],
        rooms(settings.tiers, len(draft.fixed)),
    )
    system = [pod for pod in pods if pod.assignment.is_system and pod.whole]
    tiered = [pod for pod in pods if not pod.assignment.is_system and pod.whole]
    adrift = [pod for pod in pods if not pod.whole]
    _join_system(draft, system)
    crews, refusals = _crews(tiered)
    fitted = _fit(crews, capacity, settings, draft, adrift)
    notes += [*_adrift_notes(adrift, settings, {note.subject for note in notes}), *refusals]
    notes += [*fitted.notes, *fitted.shares.notes, *_node_notes(capacity)]
    notes += [*_yield_notes(fitted, settings), *_profile_notes(ordered), *_process_notes(dropped)]
    layers = build_layers(fitted.crews, fitted.shares, fitted.drawn, capacity, settings)
    return LayerPlan(machine, layers, ordered, tuple(sorted(set(notes), key=_note_order)))


@frozen
class _Fitted:
    """What became of the crews once everything kept the engine's limits."""

    crews: tuple[Crew, ...]
    shares: Shares
    drawn: Sketch
    notes: tuple[Note, ...]


def _fit(
    crews: Sequence[Crew],
    capacity: Capacity,
    settings: Settings,
    system: Draft,
    adrift: Sequence[Located],
) -> _Fitted:
    """Share out the cores; fold the least important group until the engine's limits are kept."""
    notes: list[Note] = []
    for homeless in over_layer_limit(crews, settings.tiers):
        crews, note = _fold(crews, homeless)
        notes.append(note)
    while True:
        shares = share_out(crews, capacity, settings.tiers)
        drawn = sketch(crews, shares, system, adrift)
        over = excess(crews, shares, drawn)
        if over is None:
            return _Fitted(tuple(crews), shares, drawn, tuple(notes))
        crews, note = _fold(crews, over)
        notes.append(note)


def _fold(crews: Sequence[Crew], over: Excess) -> tuple[tuple[Crew, ...], Note]:
    kept = tuple(crew.without((over.wish.name,)) for crew in crews)
    why = f"{over.why}; the threads stay in the layer of their tier"
    return kept, Note("folded", over.wish.name, why)


def _crews(pods: Sequence[Located]) -> tuple[tuple[Crew, ...], list[Note]]:
    crews: list[Crew] = []
    notes: list[Note] = []
    for crew in crews_of(pods):
        wishes, refusals = wishes_of(crew)
        crews.append(evolve(crew, wishes=wishes))
        notes += refusals
    return tuple(crews), notes


def _join_system(draft: Draft, pods: Sequence[Located]) -> None:
    for located in pods:
        draft.add(((),), located.whole)
        draft.members[located.pod.key] = None


def _node_notes(capacity: Capacity) -> Iterator[Note]:
    if capacity.fenceable == 0:
        why = f"{capacity.describe()}, so every layer shares them and none is fenced"
        yield Note("small_machine", "node", why)


def _yield_notes(fitted: _Fitted, settings: Settings) -> Iterator[Note]:
    """Tell where what is left of an important pod yields: its main thread is among that."""
    for crew in fitted.crews:
        if (
            crew.tier not in SIZED_BY_REQUESTS
            or settings.tiers.of(crew.tier).kind is LayerKind.OPEN
        ):
            continue
        for wish in crew.wishes:
            if not wish.group.match and fitted.shares.goals[wish.name] is Goal.OPEN:
                why = (
                    f"every thread of these {crew.tier} pods that no other group takes, the main "
                    "thread among them, shares the Open layer with best effort"
                )
                yield Note("group_yields", wish.name, why)


def _profile_notes(assignments: Sequence[Assignment]) -> Iterator[Note]:
    for assignment in assignments:
        if assignment.profile is None and assignment.profile_reason:
            yield Note("profile_not_applied", assignment.pod.key, assignment.profile_reason)


def _adrift_notes(
    adrift: Sequence[Located], settings: Settings, noted: Container[str]
) -> Iterator[Note]:
    for located in adrift:
        kind = settings.tiers.of(located.assignment.tier).kind
        matters = located.assignment.is_system or kind is not LayerKind.OPEN
        if matters and located.pod.key not in noted:
            why = "its cgroup is not known, so its threads share the Open layer"
            yield Note("folded", located.pod.key, why)


def _process_notes(dropped: Sequence[str]) -> Iterator[Note]:
    for name in dropped:
        yield Note("folded", SYSTEM, f"no OR block is left for the process {name!r}")


def _note_order(note: Note) -> tuple[str, str, str]:
    return note.code, note.subject, note.message
