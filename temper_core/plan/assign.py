"""Give every pod its tier and its profile, each with the reason."""

from collections.abc import Iterable

from attrs import evolve

from temper_core.plan.capacity import MILLIS, counted
from temper_core.plan.ordering import in_pod_order
from temper_core.profiles.catalogue import Detect, ProfileCatalogue, detect_nothing
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment
from temper_core.records.pods import Origin, Pod, QosClass
from temper_core.records.tiers import Tier
from temper_core.settings import Settings
from temper_core.settings.tiers import PriorityMapping

STEPS = (Tier.CRITICAL, Tier.HIGH, Tier.NORMAL, Tier.LOW)


def assign(
    pods: Iterable[Pod],
    catalogue: ProfileCatalogue,
    machine: MachineShape,
    settings: Settings,
    detect: Detect = detect_nothing,
) -> tuple[Assignment, ...]:
    """Assign every pod, in the order of namespace, name and uid."""
    ordered = in_pod_order(pods, lambda pod: pod)
    return tuple(_assignment(pod, catalogue, machine, settings, detect) for pod in ordered)


def tier_of(pod: Pod, mapping: PriorityMapping) -> tuple[Tier, str]:
    """Return the tier of *pod*, with the inputs and the rule that decided it."""
    if pod.tier is not None:
        return pod.tier, pod.tier_rule or f"a rule sets {pod.tier}"
    if not pod.priority and not pod.priority_class:
        return _tier_by_qos(pod)
    priority = pod.priority or 0
    basis = f"priority {priority}" + (f" ({pod.priority_class})" if pod.priority_class else "")
    for tier in STEPS:
        threshold: int = getattr(mapping, tier.value)
        if priority >= threshold:
            return tier, f"{basis} >= {tier} threshold {threshold}"
    return Tier.BACKGROUND, f"{basis} < low threshold {mapping.low}"


def _tier_by_qos(pod: Pod) -> tuple[Tier, str]:
    is_best_effort = pod.qos_class is QosClass.BEST_EFFORT
    tier = Tier.BACKGROUND if is_best_effort else Tier.NORMAL
    return tier, f"no PriorityClass; QoS class {pod.qos_class} is {tier}"


def _assignment(
    pod: Pod, catalogue: ProfileCatalogue, machine: MachineShape, settings: Settings, detect: Detect
) -> Assignment:
    tier, reason = tier_of(pod, settings.priority_mapping)
    system = _system_reason(pod, settings)
    if system:
        return Assignment(pod, tier, f"{reason}; {system}", is_system=True)
    if too_large := _why_too_large(pod, machine):
        asks_nothing = evolve(pod, cpu_request_millis=0, cpu_limit_millis=0)
        return Assignment(
            asks_nothing,
            tier,
            f"{reason}; {too_large}",
            profile_reason="not looked for, as no kubelet accepts the pod here",
            too_large=too_large,
        )
    choice = catalogue.choose(pod, machine, detect)
    return Assignment(pod, tier, reason, choice.loaded, choice.reason, profile_code=choice.code)


def _why_too_large(pod: Pod, machine: MachineShape) -> str:
    """Return why no kubelet of *machine* runs *pod*, or "". One that has a cgroup does run."""
    cpus = len(machine.cpus)
    is_awaited = pod.origin is Origin.KUBERNETES and not pod.cgroups
    if not is_awaited or pod.cpu_request_millis <= cpus * MILLIS:
        return ""
    asked = f"requests {pod.cpu_request_millis}m, and the node has {counted(cpus, 'CPU')}"
    return f"{asked}: no kubelet accepts it here, so it counts as nothing"


def _system_reason(pod: Pod, settings: Settings) -> str:
    """Return why *pod* belongs to the system layer, or "" if it does not."""
    threshold = settings.priority_mapping.system
    if pod.tier is None and pod.priority is not None and pod.priority >= threshold:
        return f"priority {pod.priority} >= system threshold {threshold}, so it joins system"
    for prefix in settings.plan.system_cgroups:
        # The system layer matches first: the engine would put the threads there in any case.
        if pod.cgroups and all(path.startswith(prefix) for path in pod.cgroups):
            return f"plan.system_cgroups names {prefix}, so it joins system"
    return ""
