"""The outcome of each thread group of a pod's profile, with the arithmetic of its cores."""

from collections.abc import Iterator

from attrs import frozen

from temper_core.plan.addresses import AddressedPod
from temper_core.plan.capacity import MILLIS, counted
from temper_core.plan.demand import in_millis
from temper_core.plan.groups import GroupRequest, TierPods, exclusive_cores, group_requests_of
from temper_core.plan.places import NICE
from temper_core.plan.rule_words import match_words
from temper_core.profiles.fingerprints import containers_of
from temper_core.records.layers import Layer
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.steering import OPEN
from temper_core.records.thread_groups import ThreadGroup, Treatment

STATIC_LOSS = "without hints these threads stay in the layer of their tier"


@frozen
class GroupAccount:
    """One thread group: its request, its outcome, its layer, and the reasons.

    ``cores`` is the arithmetic of an exclusive group, over all pods of the tier with the profile.
    ``static`` is what the group loses without hints. Empty if it loses nothing.
    """

    name: str
    treatment: Treatment
    threads: str
    becomes: str
    layer: str
    cores: str = ""
    static: str = ""
    notes: tuple[str, ...] = ()


def group_accounts(plan: LayerPlan, assignment: Assignment) -> tuple[GroupAccount, ...]:
    """Return an account of every group of the assignment's profile. Empty without one."""
    if assignment.profile is None or assignment.is_system:
        return ()
    tier_pods = _tier(plan, assignment)
    group_requests, _ = group_requests_of(tier_pods)
    return tuple(_account(plan, tier_pods, request) for request in group_requests)


def containers_meant(assignment: Assignment) -> str:
    """Return the containers that the profile applies to, and why. Empty without a profile."""
    if assignment.profile is None:
        return ""
    pod = assignment.pod
    matching = containers_of(pod, assignment.profile.profile.fingerprint)
    rest = [container.name for container in pod.containers if container not in matching]
    if not rest:
        return "every thread of the pod"
    names = ", ".join(container.name for container in matching)
    if not all(container.runtime_id for container in pod.containers):
        return f"the whole pod: container {names} is not yet distinct from {', '.join(rest)}"
    return f"container {names}; the threads of {', '.join(rest)} stay in the layer of the tier"


def _tier(plan: LayerPlan, assignment: Assignment) -> TierPods:
    profile = assignment.profile.profile.id if assignment.profile else ""
    members = tuple(
        AddressedPod(other, (), ())
        for other in plan.assignments
        if other.tier is assignment.tier and not other.is_system
        if other.profile is not None and other.profile.profile.id == profile
    )
    return TierPods(assignment.tier, assignment.profile, members, is_steered=plan.is_steered)


def _account(plan: LayerPlan, tier_pods: TierPods, request: GroupRequest) -> GroupAccount:
    layer = plan.layer_named(request.name)
    notes = [note for note in plan.notes if note.subject == request.name]
    is_folded = any(note.code == "folded" for note in notes)
    home, becomes = _home(plan, request, layer, is_folded=is_folded)
    return GroupAccount(
        request.group.name,
        request.group.treatment,
        threads_of(request.group),
        becomes,
        home,
        _arithmetic(tier_pods, request.group),
        "; ".join(_static_losses(request.group)),
        tuple(f"{note.code}: {note.message}" for note in notes),
    )


def _home(
    plan: LayerPlan, request: GroupRequest, layer: Layer | None, *, is_folded: bool
) -> tuple[str, str]:
    """Return the layer of the group's threads, and their outcome as text."""
    if layer is not None:
        sized = "owns no CPU" if not layer.cpus_max else f"{layer.cpus_min}-{layer.cpus_max} CPUs"
        kind = "exclusive, idle siblings" if layer.exclusive else layer.kind.value
        return layer.name, f"a layer of its own: {kind}, {sized}"
    if request.treatment is Treatment.YIELD and not is_folded:
        return OPEN, "shares what others leave"
    tier = request.tier.value
    if plan.layer_named(tier) is None:
        return OPEN, f"stays with its tier {tier}, which shares the Open layer"
    nice = NICE.get(request.treatment)
    if nice is None:
        return tier, "stays in the layer of its tier"
    slices = "" if request.treatment is Treatment.BOOST else " and short slices"
    return tier, f"stays in the layer of its tier, with nice value {nice}{slices}"


def _arithmetic(tier_pods: TierPods, group: ThreadGroup) -> str:
    if group.treatment is not Treatment.EXCLUSIVE:
        return ""
    from decimal import Decimal  # noqa: PLC0415 - 0.3 MB, for groups with CPUs of their own

    requests = sum(member.pod.cpu_request_millis for member in tier_pods.members)
    fraction = Decimal(1) if group.cpu_fraction is None else Decimal(str(group.cpu_fraction))
    product = f"{Decimal(requests) * fraction / MILLIS:f}"
    exact = product.rstrip("0").rstrip(".") if "." in product else product
    pods = f" of {counted(len(tier_pods.members), 'pod')}" if len(tier_pods.members) > 1 else ""
    whole = counted(exclusive_cores(tier_pods, group), "whole core")
    return f"{in_millis(requests)}{pods} x {fraction} = {exact}, so {whole}"


def threads_of(group: ThreadGroup) -> str:
    """Return the threads of *group* as text."""
    return "; ".join(f"threads {match_words(match)}" for match in group.match) or "all others"


def _static_losses(group: ThreadGroup) -> Iterator[str]:
    blind = [match for match in group.match if not match.is_static]
    if group.treatment is Treatment.NORMAL or not blind:
        return
    which = (
        "" if len(blind) == len(group.match) else f"{len(blind)} of {len(group.match)} matches: "
    )
    yield f"{which}{STATIC_LOSS}"
