"""Compile assignments into the layers of a plan."""

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from temper_core.plan.addressed_pods import AddressedPods
from temper_core.plan.addresses import AddressedPod, locate
from temper_core.plan.blocks import LayerDraft, system_draft
from temper_core.plan.capacity import Capacity
from temper_core.plan.crowding import crowding, relieve
from temper_core.plan.drafting import PlanDraft, excess, fold, over_layer_limit, sketch
from temper_core.plan.groups import TierPods, tier_pods_of
from temper_core.plan.layers import Compiled, build_layers
from temper_core.plan.ordering import in_pod_order
from temper_core.plan.process_names import rooms, with_room
from temper_core.plan.remarks import (
    adrift_notes,
    in_note_order,
    node_notes,
    process_notes,
    profile_notes,
    size_notes,
    yield_notes,
)
from temper_core.plan.shapes import judged
from temper_core.plan.shares import Shares, share_out
from temper_core.plan.steered import compile_steered
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan, Note
from temper_core.records.steering import Steering
from temper_core.settings import Settings


def compile_plan(
    assignments: Iterable[Assignment],
    machine: MachineShape,
    settings: Settings,
    *,
    steering: Steering | None = None,
) -> LayerPlan:
    """Compile a plan that the engine accepts, for any machine and any number of pods.

    With *steering*, hints put threads into layers. Without it, the engine's own matchers do. Pure.
    The order of *assignments* does not matter: equal input gives an equal plan.
    """
    ordered = in_pod_order(assignments, lambda assignment: assignment.pod)
    capacity = Capacity.of(machine, settings.plan.reserve_cores)
    pods = [locate(assignment, settings.pods.cgroup_driver) for assignment in ordered]
    if steering is None:
        compiled = _compile_static(pods, capacity, settings)
    else:
        compiled = compile_steered(pods, capacity, settings, steering)
    about_pods = (*profile_notes(ordered), *size_notes(ordered))
    notes = in_note_order([*compiled.notes, *node_notes(capacity), *about_pods])
    return judged(
        LayerPlan(machine, compiled.layers, ordered, notes, compiled.hints, compiled.places)
    )


@frozen
class _Fitted:
    """The pods by tier, shares and draft that fit the engine's limits."""

    all_tier_pods: tuple[TierPods, ...]
    shares: Shares
    drawn: PlanDraft
    adrift: Sequence[AddressedPod]
    notes: tuple[Note, ...]


def _compile_static(
    located: Sequence[AddressedPod], capacity: Capacity, settings: Settings
) -> Compiled:
    draft, dropped = system_draft(settings.plan)
    pods, notes = with_room(located, rooms(settings.tiers, len(draft.fixed)))
    fitted, relief = _relieved(pods, capacity, settings)
    notes += relief
    shares, adrift = fitted.shares, fitted.adrift
    notes += adrift_notes(adrift, settings.tiers, {note.subject for note in notes})
    notes += [*fitted.notes, *shares.notes, *process_notes(dropped)]
    notes += yield_notes(fitted.all_tier_pods, shares.goals, settings.tiers)
    layers = build_layers(fitted.all_tier_pods, shares, fitted.drawn, capacity, settings)
    return Compiled(layers, tuple(notes))


def _relieved(
    pods: Sequence[AddressedPod], capacity: Capacity, settings: Settings
) -> tuple[_Fitted, Iterable[Note]]:
    """Fit the pods. Shorten the addresses of more and more of them until the plan holds all."""
    notes: dict[str, Note] = {}
    least = 1
    while True:
        fitted = _fitted(AddressedPods.of(pods), capacity, settings)
        pods, more = relieve(pods, crowding(fitted.drawn), least)
        if not more:
            return fitted, notes.values()
        notes.update(more)
        least *= 2  # each round draws up the whole plan, so there are few of them


def _fitted(addressed: AddressedPods, capacity: Capacity, settings: Settings) -> _Fitted:
    draft, _ = system_draft(settings.plan)
    _join_system(draft, addressed.system)
    all_tier_pods, refusals = tier_pods_of(addressed.tiered)
    fitted = _fit(all_tier_pods, capacity, settings, draft, addressed.adrift)
    return evolve(fitted, notes=(*refusals, *fitted.notes))


def _fit(
    all_tier_pods: Sequence[TierPods],
    capacity: Capacity,
    settings: Settings,
    system: LayerDraft,
    adrift: Sequence[AddressedPod],
) -> _Fitted:
    """Share out the cores. Fold the least important groups until the engine's limits hold."""
    notes: list[Note] = []
    for homeless in over_layer_limit(all_tier_pods, settings.tiers):
        all_tier_pods, note = fold(all_tier_pods, homeless)
        notes.append(note)
    while True:
        shares = share_out(all_tier_pods, capacity, settings.tiers)
        drawn = sketch(all_tier_pods, shares, system, adrift)
        over = excess(all_tier_pods, shares, drawn)
        if over is None:
            return _Fitted(tuple(all_tier_pods), shares, drawn, adrift, tuple(notes))
        all_tier_pods, note = fold(all_tier_pods, over)
        notes.append(note)


def _join_system(draft: LayerDraft, pods: Sequence[AddressedPod]) -> None:
    for located in pods:
        draft.add(((),), located.whole)
        draft.members[located.pod.key] = None
