"""Compare a wanted plan with the plan in force, and choose one of three ways to change.

The ways are those of ``docs/architecture.md``, "Three ways to change". Pure.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum

from attrs import frozen

from temper_core.plan.capacity import MILLIS, counted
from temper_core.records.layers import Layer
from temper_core.records.plans import LayerPlan
from temper_core.records.tiers import LayerKind

FLAGS = ("preempt", "protected", "exclusive")


class ReasonCode(StrEnum):
    """Why the layers in force do not serve a plan."""

    MACHINE = "machine"
    """They were planned for other CPUs."""
    STEERING = "steering"
    """One plan is steered by hints, the other is not."""
    MISSING = "missing"
    """The layer is not in force."""
    SETTINGS = "settings"
    """Its kind, flags, slice, weight or matchers differ."""
    GROWTH = "growth"
    """Its pods cannot get what they request."""
    DRIFT = "drift"
    """It has no room left to grow, but its pods get what they request."""
    RECOVERY = "recovery"
    """Its pods fit again, so that its demotion can be undone."""
    SURPLUS = "surplus"
    """It is larger than its pods need, or no pod needs it."""


class ChangeKind(StrEnum):
    """How a wanted plan takes effect, cheapest first."""

    NONE = "none"
    HINTS = "hints"
    WARM_SWAP = "warm_swap"
    COLD_RESTART = "cold_restart"
    START = "start"

    @property
    def needs_engine(self) -> bool:
        """Whether a new engine has to load."""
        return self not in (ChangeKind.NONE, ChangeKind.HINTS)


@frozen
class Reason:
    """One reason for a new engine. ``layer`` is empty if it concerns all layers.

    An urgent reason needs the engine now. Any other one first has to last for a while.
    """

    code: ReasonCode
    layer: str
    message: str
    is_urgent: bool


@frozen
class Move:
    """The layers of a pod's threads before and after. Empty if the pod is new, or gone."""

    pod: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@frozen
class PlanChange:
    """How a wanted plan takes effect, why, and the pods whose threads change layer at once.

    It lists reasons that are not urgent even if hints suffice for now.
    """

    kind: ChangeKind
    reasons: tuple[Reason, ...] = ()
    moves: tuple[Move, ...] = ()


def misfits(in_force: LayerPlan, wanted: LayerPlan, slack: int = 0) -> tuple[Reason, ...]:
    """Return why the layers in force do not serve the *wanted* plan. Empty if they do.

    *slack* is the number of CPUs that a layer may hold beyond its need without being too large.
    """
    reasons = [*_about_all(in_force, wanted)]
    if reasons:
        return tuple(reasons)  # comparing single layers means nothing then
    requests = _requests_of_tiers(wanted)
    for layer in wanted.layers:
        old = in_force.layer_named(layer.name)
        if old is None:
            reasons += _missing(layer)
        else:
            reasons += _settings(old, layer)
            reasons += _sizes(old, layer, slack, requests.get(layer.name, 0))
    for old in in_force.layers:
        if wanted.layer_named(old.name) is None:
            reasons += _needless(old)
    return tuple(reasons)


def change_between(
    in_force: LayerPlan | None,
    wanted: LayerPlan,
    *,
    can_swap: bool,
    held: LayerPlan | None = None,
    reasons: tuple[Reason, ...] | None = None,
    is_due: bool = False,
) -> PlanChange:
    """Return how *wanted* takes effect after the plan in force, and which pods move at once.

    *held* is the same decision held to the layers in force. *reasons* are those of ``misfits``.
    Without an urgent reason, hints suffice until the other reasons are due (*is_due*).
    """
    if in_force is None:
        return PlanChange(ChangeKind.START, (), moves_between(None, wanted))
    moves = moves_between(in_force, held or wanted)
    if same_layers(in_force, wanted):
        steers = wanted.is_steered and (moves or _is_found_elsewhere(in_force, wanted))
        return PlanChange(ChangeKind.HINTS if steers else ChangeKind.NONE, (), moves)
    reasons = misfits(in_force, wanted) if reasons is None else reasons
    if _hints_do(in_force, wanted, reasons, is_due=is_due):
        return PlanChange(ChangeKind.HINTS, reasons, moves)
    kind = ChangeKind.WARM_SWAP if can_swap else ChangeKind.COLD_RESTART
    return PlanChange(kind, reasons or (_BY_MATCHERS,), moves)


def same_layers(one: LayerPlan, other: LayerPlan) -> bool:
    """Whether the two plans are equal for the engine."""
    if len(one.layers) != len(other.layers):
        return False
    return all(_is_same(*pair) for pair in zip(one.layers, other.layers, strict=True))


def moves_between(before: LayerPlan | None, after: LayerPlan) -> tuple[Move, ...]:
    """Return the pods whose threads change their layer, by name."""
    old = layers_by_pod(before) if before is not None else {}
    new = layers_by_pod(after)
    return tuple(
        Move(pod, old.get(pod, ()), new.get(pod, ()))
        for pod in sorted({**old, **new})
        if old.get(pod) != new.get(pod)
    )


def layers_by_pod(plan: LayerPlan) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the layers in which threads of each pod live, by the pod's key."""
    layers: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for layer in plan.layers:
        for key in (*layer.members, *layer.group_members):
            layers[key] = (*layers[key], layer.name)
    return dict(layers)


_BY_MATCHERS = Reason(
    ReasonCode.SETTINGS, "", "the engine's own matchers distinguish pods", is_urgent=True
)


def _is_found_elsewhere(in_force: LayerPlan, wanted: LayerPlan) -> bool:
    """Whether threads are found at other places. A plan read from a document has no places."""
    return bool(in_force.steering) and in_force.steering != wanted.steering


def _hints_do(
    in_force: LayerPlan, wanted: LayerPlan, reasons: tuple[Reason, ...], *, is_due: bool
) -> bool:
    if not (in_force.is_steered and wanted.is_steered):
        return False
    return not any(is_due or reason.is_urgent for reason in reasons)


def _about_all(in_force: LayerPlan, wanted: LayerPlan) -> Iterator[Reason]:
    if in_force.machine != wanted.machine:
        old, new = in_force.machine, wanted.machine
        why = f"planned for {new.cores} cores, in force for {old.cores}"
        if (old.cores, len(old.cpus)) == (new.cores, len(new.cpus)):
            why = "the CPUs are numbered or grouped differently"
        yield Reason(ReasonCode.MACHINE, "", why, is_urgent=True)
    if in_force.is_steered != wanted.is_steered:
        why = "the engine in force takes no hints"
        if in_force.is_steered:
            why = "the engine in force needs hints, and the new plan has none"
        yield Reason(ReasonCode.STEERING, "", why, is_urgent=True)


def _missing(layer: Layer) -> Iterator[Reason]:
    """Yield a reason if *layer* has pods or is open. An empty standby layer is no reason."""
    if layer.members or layer.group_members or layer.kind is LayerKind.OPEN:
        why = f"is not in force ({layer.reason})"
        yield Reason(ReasonCode.MISSING, layer.name, why, is_urgent=True)


def _needless(old: Layer) -> Iterator[Reason]:
    """Yield a reason if *old* holds CPUs without a pod. A layer without CPUs may stay."""
    if old.cpus_min:
        why = f"no thread belongs there any more; it owns {_size(old)}"
        yield Reason(ReasonCode.SURPLUS, old.name, why, is_urgent=False)


def _settings(old: Layer, new: Layer) -> Iterator[Reason]:
    """Yield the differences that do not come from the pods' demand."""
    differences = []
    is_by_demand = LayerKind.OPEN in (old.kind, new.kind) or old.demoted != new.demoted
    if old.kind is not new.kind and not is_by_demand:
        differences.append(f"is {old.kind}, is to be {new.kind}")
    differences += [
        f"is {'' if getattr(old, flag) else 'not '}{flag}"
        for flag in FLAGS
        if getattr(old, flag) is not getattr(new, flag) and not is_by_demand
    ]
    if old.slice_us > new.slice_us:
        differences.append(f"its slice is {old.slice_us} µs, is to be {new.slice_us} µs")
    if old.weight != new.weight:
        differences.append(f"its weight is {old.weight}, is to be {new.weight}")
    if not is_by_demand and not _is_same_range(old, new):
        differences.append(f"grows and shrinks by {old.util_range}, is to by {new.util_range}")
    if old.matches != new.matches:
        differences.append("its matchers differ")
    if differences:
        yield Reason(ReasonCode.SETTINGS, new.name, "; ".join(differences), is_urgent=True)
    elif old.slice_us < new.slice_us:
        # Its latency threads have gone. A slice that is too short costs little.
        why = f"its slice is {old.slice_us} µs, could be {new.slice_us} µs"
        yield Reason(ReasonCode.SURPLUS, new.name, why, is_urgent=False)


def _sizes(old: Layer, new: Layer, slack: int, requests: int) -> Iterator[Reason]:
    if LayerKind.OPEN in (old.kind, new.kind):
        yield from _whether_it_owns(old, new)
        return
    if new.demoted and not old.demoted:
        why = f"its pods do not fit into {_size(old)} any more ({new.reason})"
        yield Reason(ReasonCode.GROWTH, new.name, why, is_urgent=True)
        return
    if old.demoted and not new.demoted:
        why = f"is {old.kind} for lack of cores, could be {new.kind} now"
        yield Reason(ReasonCode.RECOVERY, new.name, why, is_urgent=False)
    code = _misfit(old, new, slack, requests)
    if code is not None:
        why = f"owns {_size(old)}, is to own {_size(new)}"
        yield Reason(code, new.name, why, is_urgent=code is ReasonCode.GROWTH)


def _whether_it_owns(old: Layer, new: Layer) -> Iterator[Reason]:
    if old.kind is LayerKind.OPEN and new.kind is not LayerKind.OPEN:
        why = f"owns nothing, could own {_size(new)} now"
        yield Reason(ReasonCode.DRIFT, new.name, why, is_urgent=False)
    elif new.kind is LayerKind.OPEN and old.kind is not LayerKind.OPEN:
        why = f"owns {_size(old)}, and others need it more"
        yield Reason(ReasonCode.SURPLUS, new.name, why, is_urgent=False)


def _misfit(old: Layer, new: Layer, slack: int, requests: int) -> ReasonCode | None:
    """Compare sizes. A small difference of a layer's largest size is no misfit."""
    holds, may_hold = old.cpus_min or 0, old.cpus_max or 0
    needed, may_need = new.cpus_min or 0, new.cpus_max or 0
    if needed > may_hold:
        return ReasonCode.GROWTH
    if holds < needed == may_hold or may_hold < min(may_need, requests / MILLIS):
        return ReasonCode.DRIFT
    if holds > needed + (0 if new.exclusive else slack):
        return ReasonCode.SURPLUS
    return None


def _requests_of_tiers(plan: LayerPlan) -> Mapping[str, int]:
    """Return the requests of the pods of each tier in millicores, by the name of its layer."""
    requests: defaultdict[str, int] = defaultdict(int)
    for assignment in plan.assignments:
        if not assignment.is_system:
            requests[assignment.tier.value] += assignment.pod.cpu_request_millis
    return requests


def _is_same(old: Layer, new: Layer) -> bool:
    return _told_to_engine(old) == _told_to_engine(new) and _is_same_range(old, new)


def _told_to_engine(layer: Layer) -> tuple[object, ...]:
    """Return the fields that the layer's configuration, with its comment, is made from."""
    return (
        layer.name,
        layer.kind,
        layer.matches,
        layer.tier,
        layer.cpus_min,
        layer.cpus_max,
        layer.exclusive,
        layer.protected,
        layer.preempt,
        layer.slice_us,
        layer.weight,
        layer.demoted,
    )


def _is_same_range(old: Layer, new: Layer) -> bool:
    return old.util_range == new.util_range


def _size(layer: Layer) -> str:
    if layer.cpus_min == layer.cpus_max:
        return _cpus(layer.cpus_max)
    return f"{layer.cpus_min or 0} to {_cpus(layer.cpus_max)}"


def _cpus(count: int | None) -> str:
    return counted(count, "CPU") if count else "no CPU"
