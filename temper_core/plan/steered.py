"""Compile a steered plan: layers that match by hint alone, and the places that assign hints."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from temper_core.engine.capabilities import LARGEST_LAYER_COUNT
from temper_core.plan.addressed_pods import AddressedPods
from temper_core.plan.addresses import AddressedPod
from temper_core.plan.blocks import Block, LayerDraft, system_draft
from temper_core.plan.capacity import Capacity
from temper_core.plan.drafting import ALWAYS, PlanDraft, drafts_of, fold, over_layer_limit
from temper_core.plan.groups import TierPods, tier_pods_of
from temper_core.plan.held import held_shares
from temper_core.plan.hint_numbers import hints_for
from temper_core.plan.layers import Compiled, build_layers
from temper_core.plan.places import GroupPlacement, places_of
from temper_core.plan.remarks import adrift_notes, process_notes, yield_notes
from temper_core.plan.rounds import Spare
from temper_core.plan.shares import Shares, share_out
from temper_core.records.engine_matchers import Matcher
from temper_core.records.layers import Layer
from temper_core.records.plans import Note
from temper_core.records.steering import FIXED_HINTS, OPEN, SYSTEM, Steering
from temper_core.records.tiers import Tier
from temper_core.settings import Settings

MOST_LAYERS = LARGEST_LAYER_COUNT - 1
"""One of the engine's layers is the last one without any condition, which it requires."""
EVERYTHING: Block = (Matcher("CgroupPrefix", ""),)


def compile_steered(
    pods: Sequence[AddressedPod], capacity: Capacity, settings: Settings, steering: Steering
) -> Compiled:
    """Compile layers that match hints. With ``steering.hold`` they are the layers in force."""
    addressed = AddressedPods.of(pods)
    all_tier_pods, notes = tier_pods_of(addressed.tiered, is_steered=True)
    if steering.hold:
        shared = _Shared(
            all_tier_pods, held_shares(steering.in_force, all_tier_pods, capacity, settings.tiers)
        )
    else:
        shared = _share_out(all_tier_pods, capacity, settings)
    system, dropped = system_draft(settings.plan, ((_hint(FIXED_HINTS[SYSTEM]),),))
    system.members.update(dict.fromkeys(located.pod.key for located in addressed.system))
    drafts = drafts_of(shared.all_tier_pods, shared.shares, system, addressed.adrift)
    if steering.hold:
        hints = _hints([layer.name for layer in steering.in_force], steering)
        layers = tuple(_held(steering.in_force, drafts, shared.shares))
    else:
        drawn = _drawn(drafts, shared.shares, steering)
        hints = _hints(drawn.drafts, steering)
        layers = build_layers(shared.all_tier_pods, shared.shares, drawn, capacity, settings)
    goals = shared.shares.goals
    notes = (*notes, *shared.notes, *shared.shares.notes, *process_notes(dropped))
    return Compiled(
        layers,
        (
            *notes,
            *adrift_notes(addressed.adrift, settings.tiers),
            *yield_notes(shared.all_tier_pods, goals, settings.tiers),
        ),
        hints,
        places_of(
            addressed.system, shared.all_tier_pods, GroupPlacement({*hints}, goals), settings.plan
        ),
    )


@frozen
class _Shared:
    all_tier_pods: tuple[TierPods, ...]
    shares: Shares
    notes: tuple[Note, ...] = ()


def _share_out(
    all_tier_pods: tuple[TierPods, ...], capacity: Capacity, settings: Settings
) -> _Shared:
    """Distribute the cores. Groups fold only if the engine has no layer left."""
    notes: list[Note] = []
    for homeless in over_layer_limit(all_tier_pods, settings.tiers, MOST_LAYERS):
        all_tier_pods, note = fold(all_tier_pods, homeless)
        notes.append(note)
    spare = Spare(settings.plan.headroom_cores, MOST_LAYERS)
    shares = share_out(all_tier_pods, capacity, settings.tiers, spare)
    return _Shared(all_tier_pods, shares, tuple(notes))


def _drawn(drafts: Mapping[str, LayerDraft], shares: Shares, steering: Steering) -> PlanDraft:
    """Put the layers in order: hints come before the engine's own matchers."""
    tiers = [tier.value for tier in Tier]
    groups = [name for name in drafts if name not in (*ALWAYS, *tiers)]
    owning = [name for name in tiers if name in shares.grants]
    matching = [name for name in (*groups, *owning) if name in shares.grants]
    ordered = {name: drafts[name] for name in (*matching, *ALWAYS)}
    hints = _hints(ordered, steering)
    blocks: dict[str, tuple[Block, ...]] = {name: ((_hint(hints[name]),),) for name in ordered}
    blocks[SYSTEM] = drafts[SYSTEM].blocks()
    blocks[OPEN] = (*blocks[OPEN], EVERYTHING)
    return PlanDraft(ordered, blocks)


def _held(
    in_force: Sequence[Layer], drafts: Mapping[str, LayerDraft], shares: Shares
) -> Iterator[Layer]:
    """Return the layers in force unchanged, with the pods that belong there now."""
    for layer in in_force:
        draft = drafts.get(layer.name, LayerDraft())
        demand = shares.demands.get(layer.tier) if layer.tier is not None else None
        reason = layer.reason
        if demand is not None and layer.name == layer.tier:
            reason = f"{demand.describe()}; {layer.reason.rpartition('; ')[2]}"
        yield evolve(
            layer,
            members=tuple(sorted(draft.members)),
            group_members=tuple(sorted(draft.group_members)),
            reason=reason,
        )


def _hints(names: Sequence[str] | Mapping[str, object], steering: Steering) -> dict[str, int]:
    """Return the hints of layers *names*. Layers in force keep theirs."""
    in_force = {layer.name: layer.hint for layer in steering.in_force}
    assigned = {name: hint for name, hint in in_force.items() if hint is not None}
    return hints_for(names, {**steering.hints, **assigned})


def _hint(number: int) -> Matcher:
    return Matcher("HintEquals", number)
