"""What a wanted plan changes of the plan in force, and which of the three ways that takes.

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
    """They are for other CPUs."""
    STEERING = "steering"
    """One plan is steered by hints, the other is not."""
    MISSING = "missing"
    """The layer is not in force."""
    SETTINGS = "settings"
    """Its kind, flags, slice, weight or matchers are others."""
    GROWTH = "growth"
    """Its pods cannot get what they request."""
    DRIFT = "drift"
    """It has no room left to grow, but its pods get what they request."""
    SURPLUS = "surplus"
    """It is larger than its pods need, or nobody needs it."""


class ChangeKind(StrEnum):
    """How a wanted plan takes effect, cheapest first."""

    NONE = "none"
    HINTS = "hints"
    WARM_SWAP = "warm_swap"
    COLD_RESTART = "cold_restart"
    START = "start"

    @property
    def needs_engine(self) -> bool:
        """Whether another engine has to load."""
        return self not in (ChangeKind.NONE, ChangeKind.HINTS)


@frozen
class Reason:
    """One reason for another engine. ``layer`` is empty where it is about all of them.

    What is urgent calls for the engine now, the rest only once it has stood for a while.
    """

    code: ReasonCode
    layer: str
    message: str
    is_urgent: bool


@frozen
class Move:
    """The layers of a pod's threads before and after. None where the pod is new, or gone."""

    pod: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@frozen
class PlanChange:
    """What a wanted plan changes: how, why so, and which pods' threads change their layer at once.

    Reasons that are not urgent are told even where hints still do.
    """

    kind: ChangeKind
    reasons: tuple[Reason, ...] = ()
    moves: tuple[Move, ...] = ()


def misfits(in_force: LayerPlan, wanted: LayerPlan, slack: int = 0) -> tuple[Reason, ...]:
    """Say why the layers in force do not serve the *wanted* plan. Nothing where they do.

    *slack* is how many CPUs a layer may hold beyond what it needs without being too large.
    """
    found = [*_about_all(in_force, wanted)]
    if found:
        return tuple(found)  # one layer says nothing about the other then
    requests = _requests_of_tiers(wanted)
    for layer in wanted.layers:
        old = in_force.layer_named(layer.name)
        if old is None:
            found += _missing(layer)
        else:
            found += _settings(old, layer)
            found += _sizes(old, layer, slack, requests.get(layer.name, 0))
    for old in in_force.layers:
        if wanted.layer_named(old.name) is None:
            found += _needless(old)
    return tuple(found)


def change_between(
    in_force: LayerPlan | None,
    wanted: LayerPlan,
    *,
    can_swap: bool,
    held: LayerPlan | None = None,
    reasons: tuple[Reason, ...] | None = None,
    is_due: bool = False,
) -> PlanChange:
    """Say how *wanted* takes effect after the plan in force, by which pods move at once.

    *held* is the same decision held to the layers in force, *reasons* what ``misfits`` says.
    Without urgent reasons hints do until what is not urgent *is_due*.
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
    """Whether the engine could not tell the two plans apart."""
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
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for layer in plan.layers:
        for key in (*layer.members, *layer.group_members):
            found[key] = (*found[key], layer.name)
    return dict(found)


_BY_MATCHERS = Reason(
    ReasonCode.SETTINGS, "", "the engine's own matchers tell pods apart", is_urgent=True
)


def _is_found_elsewhere(in_force: LayerPlan, wanted: LayerPlan) -> bool:
    """Whether threads are found by other places. A plan read from a document names none."""
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
            why = "the CPUs are numbered or joined in another way"
        yield Reason(ReasonCode.MACHINE, "", why, is_urgent=True)
    if in_force.is_steered != wanted.is_steered:
        why = "the engine in force takes no hints"
        if in_force.is_steered:
            why = "the engine in force goes by hints, and there are none any more"
        yield Reason(ReasonCode.STEERING, "", why, is_urgent=True)


def _missing(layer: Layer) -> Iterator[Reason]:
    """Tell of a layer that threads wait for. One that only stands by is no reason."""
    if layer.members or layer.group_members or layer.kind is LayerKind.OPEN:
        why = f"is not in force ({layer.reason})"
        yield Reason(ReasonCode.MISSING, layer.name, why, is_urgent=True)


def _needless(old: Layer) -> Iterator[Reason]:
    """Tell of a layer that keeps CPUs for nobody. One that holds none may stand by."""
    if old.cpus_min:
        why = f"no thread belongs there any more; it owns {_size(old)}"
        yield Reason(ReasonCode.SURPLUS, old.name, why, is_urgent=False)


def _settings(old: Layer, new: Layer) -> Iterator[Reason]:
    """Tell what is other for another cause than the pods' demand."""
    told = []
    is_by_demand = LayerKind.OPEN in (old.kind, new.kind) or old.demoted != new.demoted
    if old.kind is not new.kind and not is_by_demand:
        told.append(f"is {old.kind}, is to be {new.kind}")
    told += [
        f"is {'' if getattr(old, flag) else 'not '}{flag}"
        for flag in FLAGS
        if getattr(old, flag) is not getattr(new, flag) and not is_by_demand
    ]
    if old.slice_us != new.slice_us:
        told.append(f"its slice is {old.slice_us} µs, is to be {new.slice_us} µs")
    if old.weight != new.weight:
        told.append(f"its weight is {old.weight}, is to be {new.weight}")
    if not is_by_demand and not _is_same_range(old, new):
        told.append(f"grows and shrinks by {old.util_range}, is to by {new.util_range}")
    if old.matches != new.matches:
        told.append("the engine is to match other threads")
    if told:
        yield Reason(ReasonCode.SETTINGS, new.name, "; ".join(told), is_urgent=True)


def _sizes(old: Layer, new: Layer, slack: int, requests: int) -> Iterator[Reason]:
    if LayerKind.OPEN in (old.kind, new.kind):
        yield from _whether_it_owns(old, new)
        return
    if new.demoted and not old.demoted:
        why = f"its pods do not fit into {_size(old)} any more ({new.reason})"
        yield Reason(ReasonCode.GROWTH, new.name, why, is_urgent=True)
        return
    if old.demoted and not new.demoted:
        why = f"is {old.kind} for want of cores, could be {new.kind} now"
        yield Reason(ReasonCode.DRIFT, new.name, why, is_urgent=False)
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
    """Compare sizes: small differences of what a layer may own at most are no misfit."""
    held, may_hold = old.cpus_min or 0, old.cpus_max or 0
    needed, may_need = new.cpus_min or 0, new.cpus_max or 0
    if needed > may_hold:
        return ReasonCode.GROWTH
    if held < needed == may_hold or may_hold < min(may_need, requests / MILLIS):
        return ReasonCode.DRIFT
    if held > needed + (0 if new.exclusive else slack):
        return ReasonCode.SURPLUS
    return None


def _requests_of_tiers(plan: LayerPlan) -> Mapping[str, int]:
    """Return the requests of the pods of each tier in millicores, by the name of its layer."""
    found: defaultdict[str, int] = defaultdict(int)
    for each in plan.assignments:
        if not each.is_system:
            found[each.tier.value] += each.pod.cpu_request_millis
    return found


def _is_same(old: Layer, new: Layer) -> bool:
    return _told_to_engine(old) == _told_to_engine(new) and _is_same_range(old, new)


def _told_to_engine(layer: Layer) -> tuple[object, ...]:
    """Return what the layer's configuration is made from, its comment included."""
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
