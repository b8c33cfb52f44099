"""``temper plan --diff``: what a plan would change of the one in force, and how."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from temper_core.cli.plan_in_force import PlanInForce, ask_in_force, read_in_force
from temper_core.cli.planning import PlanningInputs
from temper_core.console import plain_table, results_console
from temper_core.decide.patience import RECOVER_AFTER_S
from temper_core.errors import EXIT_CLEAN, EXIT_FINDINGS
from temper_core.plan.capacity import counted
from temper_core.plan.change import (
    ChangeKind,
    PlanChange,
    Reason,
    ReasonCode,
    change_between,
    layers_by_pod,
)
from temper_core.plan.render import SCHEMA_VERSION
from temper_core.records.layers import Layer
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import OPEN

WORDS: Mapping[ChangeKind, str] = {
    ChangeKind.NONE: "nothing changes",
    ChangeKind.HINTS: "threads move by hints, the engine is not touched",
    ChangeKind.WARM_SWAP: "the next engine loads while the one in force schedules",
    ChangeKind.COLD_RESTART: "the engine stops, and the node is on the stock scheduler until the "
    "next has loaded",
    ChangeKind.START: "an engine starts",
}


@frozen
class PodMove:
    """The layers of a pod's threads: now, at once, and after the wanted plan is in force."""

    pod: str
    before: tuple[str, ...]
    at_once: tuple[str, ...]
    after: tuple[str, ...]


@frozen
class PlanDifference:
    """The change from the plan in force to the wanted one."""

    in_force: PlanInForce
    change: PlanChange
    moves: tuple[PodMove, ...]
    pods: int
    swap: str
    patience_s: float

    @property
    def exit_code(self) -> int:
        """1 if another engine has to load, 0 if hints suffice."""
        return EXIT_FINDINGS if self.change.kind.needs_engine else EXIT_CLEAN


def difference(ready: PlanningInputs, against: Path | None, *, steered: bool) -> PlanDifference:
    """Compare the wanted plan with the agent's, or with the one in the file *against*.

    The wanted plan is steered if the one in force is, else if *steered* is true. Raises
    NoAgentError if no agent answers, DocumentError for a file that is no plan.
    """
    settings = ready.settings
    if against is None:
        in_force = ask_in_force(settings, ready.machine)
    else:
        in_force = read_in_force(against, ready.machine)
    limits, old = settings.scheduler, in_force.plan
    can_swap = limits.warm_swap if in_force.can_swap is None else in_force.can_swap
    is_steered = limits.steering != "static" and (steered or old is None or old.is_steered)
    decision = ready.decider.decide(ready.pods, old, steered=is_steered, can_swap=can_swap)
    change = decision.change
    if old is not None and not (old.is_steered or is_steered):
        change = change_between(old, _as_known(old, decision.wanted), can_swap=can_swap)
    return PlanDifference(
        in_force,
        change,
        tuple(_pod_moves(old, decision.held, decision.wanted, change)),
        len(ready.pods),
        _swap_text(in_force, change.kind, can_swap=can_swap),
        settings.plan.shrink_after_s,
    )


def difference_document(comparison: PlanDifference) -> dict[str, Any]:
    """Return the difference ready for JSON."""
    in_force = comparison.in_force
    return {
        "schema_version": SCHEMA_VERSION,
        "against": in_force.source,
        "generation": in_force.generation,
        "steered": in_force.plan is not None and in_force.plan.is_steered,
        "change": comparison.change.kind.value,
        "can_swap": in_force.can_swap,
        "remark": in_force.remark,
        "reasons": [
            {
                "code": reason.code.value,
                "layer": reason.layer,
                "urgent": reason.is_urgent,
                "message": reason.message,
            }
            for reason in comparison.change.reasons
        ],
        "moves": [
            {
                "pod": move.pod,
                "before": list(move.before),
                "at_once": list(move.at_once),
                "after": list(move.after),
            }
            for move in comparison.moves
        ],
    }


def print_difference(comparison: PlanDifference) -> None:
    """Print the difference as a table for people."""
    console = results_console()
    number = (
        f", generation {comparison.in_force.generation}" if comparison.in_force.generation else ""
    )
    console.print(f"against  {comparison.in_force.source}{number}")
    console.print(f"change   {comparison.change.kind.value}: {WORDS[comparison.change.kind]}")
    if comparison.swap:
        console.print(f"swap     {comparison.swap}")
    if comparison.change.reasons:
        _print_reasons(console, comparison)
    staying = comparison.pods - len([move for move in comparison.moves if move.after])
    console.print(
        f"\n{counted(len(comparison.moves), 'pod')} in other layers than before, {staying} stay"
    )
    if comparison.moves:
        _print_pod_moves(console, comparison)


def _print_reasons(console: Any, comparison: PlanDifference) -> None:  # noqa: ANN401 - rich's console
    console.print()
    table = plain_table("reason", "layer", "needs an engine", "why")
    for reason in comparison.change.reasons:
        when = _when(reason, comparison)
        table.add_row(reason.code.value, reason.layer or "-", when, reason.message)
    console.print(table)


def _when(reason: Reason, comparison: PlanDifference) -> str:
    """Return when the reason alone needs an engine, as text."""
    if reason.is_urgent:
        return "now"
    if comparison.change.kind.needs_engine:
        return "no, joins the one that starts"
    is_recovery = reason.code is ReasonCode.RECOVERY
    waits_s = min(comparison.patience_s, RECOVER_AFTER_S) if is_recovery else comparison.patience_s
    return f"if it lasts {waits_s:g} s"


def _print_pod_moves(console: Any, comparison: PlanDifference) -> None:  # noqa: ANN401 - rich's console
    is_twofold = comparison.change.kind.needs_engine
    table = plain_table("pod", "in force", "at once", *(["with the engine"] if is_twofold else []))
    for move in comparison.moves:
        steps = (move.before, move.at_once, *([move.after] if is_twofold else []))
        table.add_row(move.pod, *(", ".join(layers) or "-" for layers in steps))
    console.print(table)


def _pod_moves(
    old: LayerPlan | None, held: LayerPlan | None, wanted: LayerPlan, change: PlanChange
) -> Iterator[PodMove]:
    before = layers_by_pod(old) if old is not None else {}
    after = layers_by_pod(wanted)
    at_once = layers_by_pod(held) if held is not None else after
    if held is None and change.kind.needs_engine:
        # Without steering, a pod that no matcher in force matches is in Open until then.
        newcomer = (OPEN,) if old is not None else ()
        at_once = {pod: before.get(pod, newcomer) for pod in after}
    for pod in sorted({**before, **after}):
        steps = tuple(layers.get(pod, ()) for layers in (before, at_once, after))
        if len({*steps}) > 1:
            yield PodMove(pod, *steps)


def _as_known(old: LayerPlan, wanted: LayerPlan) -> LayerPlan:
    """Take over the matchers in force for layers of the same pods.

    The agent's matchers hold the cgroups of its pods, which a PodList does not have.
    """
    layers = [
        evolve(layer, matches=old_layer.matches)
        if (old_layer := old.layer_named(layer.name)) and _who(old_layer) == _who(layer)
        else layer
        for layer in wanted.layers
    ]
    return evolve(wanted, layers=tuple(layers))


def _who(layer: Layer) -> object:
    conditions = {
        tuple(matcher for matcher in block if not matcher.kind.startswith("Cgroup"))
        for block in layer.matches
    }
    return layer.members, layer.group_members, conditions


def _swap_text(in_force: PlanInForce, kind: ChangeKind, *, can_swap: bool) -> str:
    if in_force.plan is None:
        return f"nothing to swap: {in_force.remark}"
    if not kind.needs_engine:
        return ""
    if in_force.can_swap is None:
        why = "is" if can_swap else "is not"
        return f"not known: {in_force.source} does not have it; [scheduler] warm_swap {why} set"
    return "the agent can" if can_swap else f"the agent cannot: {in_force.remark}"
