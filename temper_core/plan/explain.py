"""Explain the placement of one pod with its numbers, and list what would change it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from temper_core.errors import InputError
from temper_core.plan.addresses import process_names
from temper_core.plan.capacity import MILLIS, Capacity, counted
from temper_core.plan.demand import in_millis
from temper_core.plan.group_accounts import GroupAccount, containers_meant, group_accounts
from temper_core.plan.groups import OWNING_TIERS, layer_name
from temper_core.plan.render import SCHEMA_VERSION
from temper_core.plan.rule_words import threads_in
from temper_core.profiles.fingerprints import MOST_IMAGES
from temper_core.records.layers import Layer
from temper_core.records.plans import Assignment, LayerPlan, Note
from temper_core.records.pods import PROFILE_ANNOTATIONS, Origin, Pod, QosClass
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings import Settings
from temper_core.suggestions import similar

LONGEST_KEY = 63 + 1 + 253
"""Of a namespace and a pod's name (RFC 1123)."""
SUGGESTIONS = 5


@attrs.frozen
class ExplainedPlace:
    """One layer in which threads of the pod live. Sizes in CPUs, ``None`` if it owns none.

    ``hint`` is the hint of the layer if the plan is steered.
    """

    layer: str
    kind: LayerKind
    threads: str
    cpus_min: int | None
    cpus_max: int | None
    demoted: bool
    reason: str
    hint: int | None = None


@attrs.frozen
class Explanation:
    """The inputs and reasons for the placement of one pod. ``inputs`` are by name.

    ``groups`` are those of its profile. ``profile_about`` names the containers it applies to.
    """

    pod: str
    uid: str
    tier: Tier
    reason: str
    inputs: Mapping[str, str]
    profile: str
    profile_reason: str
    places: tuple[ExplainedPlace, ...]
    notes: tuple[Note, ...]
    changes: tuple[str, ...]
    profile_about: str = ""
    profile_extends: tuple[str, ...] = ()
    groups: tuple[GroupAccount, ...] = ()


def explain(plan: LayerPlan, settings: Settings, pod_key: str) -> Explanation:
    """Explain the pod with that key (``namespace/name``), or with that name if it is unique.

    Raises InputError with similar names if no pod, or more than one, matches.
    """
    assignment = _find(plan.assignments, pod_key)
    places = tuple(_places(plan, assignment))
    return Explanation(
        pod=assignment.pod.key,
        uid=assignment.pod.uid,
        tier=assignment.tier,
        reason=assignment.reason,
        inputs=_inputs(assignment.pod),
        profile=assignment.profile.profile.id if assignment.profile else "",
        profile_reason=assignment.profile_reason or "nothing about the pod claims a profile",
        places=places,
        notes=tuple(_notes_about(plan, assignment, places)),
        changes=tuple(_changes(plan, settings, assignment, places)),
        profile_about=containers_meant(assignment),
        profile_extends=assignment.profile.lineage if assignment.profile else (),
        groups=group_accounts(plan, assignment),
    )


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation ready for JSON."""
    return {"schema_version": SCHEMA_VERSION, **attrs.asdict(explanation)}


def _find(assignments: Iterable[Assignment], pod_key: str) -> Assignment:
    by_key: dict[str, Assignment] = {assignment.pod.key: assignment for assignment in assignments}
    if pod_key in by_key:
        return by_key[pod_key]
    matches = [key for key, assignment in by_key.items() if assignment.pod.name == pod_key]
    if len(matches) == 1:
        return by_key[matches[0]]
    if matches:
        raise InputError(f"{len(matches)} pods are named {pod_key!r}: {', '.join(sorted(matches))}")
    if len(pod_key) > LONGEST_KEY:
        shown = f"{pod_key[:LONGEST_KEY]!r}..."
        raise InputError(f"no pod {shown}: a namespace/name has {LONGEST_KEY} characters at most")
    close = [key for key in _similar(pod_key, by_key) if key]
    hint = f"; similar: {', '.join(close)}" if close else ""
    raise InputError(f"no pod {pod_key!r} among {len(by_key)} on this node{hint}")


def _similar(pod_key: str, by_key: Mapping[str, Assignment]) -> list[str]:
    """Return the keys of pods with that name, then those of a similar one, then a similar key."""
    names: dict[str, list[str]] = {}
    for key, assignment in by_key.items():
        names.setdefault(assignment.pod.name, []).append(key)
    name = pod_key.rpartition("/")[2]
    keys = [*names.get(name, ()), *names.get(similar(name, names) or "", ())]
    return list(dict.fromkeys([*keys, similar(pod_key, by_key) or ""]))[:SUGGESTIONS]


def _inputs(pod: Pod) -> dict[str, str]:
    limit = pod.cpu_limit_millis
    return {
        "priority": "none" if pod.priority is None else str(pod.priority),
        "priority_class": pod.priority_class or "none",
        "qos_class": pod.qos_class.value,
        "cpu_request": in_millis(pod.cpu_request_millis),
        "cpu_limit": "none" if limit is None else in_millis(limit),
        "images": _images(pod),
        "cgroups": ", ".join(pod.cgroups) or _found_by(pod),
    }


def _images(pod: Pod) -> str:
    """Return the images of *pod*, at most as many as are compared with profiles."""
    images = [container.image for container in pod.containers if container.image]
    shown = [*images[:MOST_IMAGES]]
    if len(images) > MOST_IMAGES:
        shown.append(f"and {len(images) - MOST_IMAGES} more")
    return ", ".join(shown) or "none"


def _found_by(pod: Pod) -> str:
    """Return how the threads of a pod with an unknown cgroup are found."""
    if pod.origin is Origin.KUBERNETES:
        return "not seen; found by the pod's uid"
    names = process_names(pod)
    if pod.origin is Origin.WORKLOAD and names:
        return f"any; found by process name, which begins with {' or '.join(names)}"
    return "not seen"


def _places(plan: LayerPlan, assignment: Assignment) -> Iterator[ExplainedPlace]:
    key = assignment.pod.key
    for layer in plan.layers:
        if key not in layer.members and key not in layer.group_members:
            continue
        threads = threads_in(layer.name, plan.steering, assignment.pod)
        yield ExplainedPlace(
            layer.name,
            layer.kind,
            threads or _static_text(layer, assignment),
            layer.cpus_min,
            layer.cpus_max,
            layer.demoted,
            layer.reason,
            plan.hints.get(layer.name),
        )


def _static_text(layer: Layer, assignment: Assignment) -> str:
    if assignment.pod.key in layer.members:
        return "every thread that no group takes" if assignment.profile else "every thread"
    is_tier = layer.tier is None or layer.name == layer.tier.value
    return "threads of some of the profile's groups" if is_tier else "threads of this group"


def _notes_about(
    plan: LayerPlan, assignment: Assignment, places: Iterable[ExplainedPlace]
) -> Iterator[Note]:
    subjects = {assignment.pod.key, assignment.tier.value, "node"}
    subjects.update(place.layer for place in places)
    if assignment.profile is not None:
        profile = assignment.profile.profile
        subjects.update(
            layer_name(profile.id, group.name, assignment.tier) for group in profile.thread_groups
        )
    return (note for note in plan.notes if note.subject in subjects)


def _changes(
    plan: LayerPlan, settings: Settings, assignment: Assignment, places: Iterable[ExplainedPlace]
) -> Iterator[str]:
    if assignment.too_large:
        yield "a node with as many CPUs as it requests would run it"
        return
    yield from _tier_changes(assignment, settings)
    yield from _yield_changes(plan, assignment)
    capacity = Capacity.of(plan.machine, settings.plan.reserve_cores)
    for place in places:
        yield from _size_changes(place, assignment.tier, capacity)
    has_layer = plan.layer_named(assignment.tier.value) is not None
    if assignment.tier in OWNING_TIERS and not assignment.is_system and not has_layer:
        yield f"{assignment.tier} owns CPUs where a core is left: {capacity.describe()}"
    if assignment.profile is None and not assignment.is_system:
        yield _profile_change(assignment.pod)


def _profile_change(pod: Pod) -> str:
    if pod.origin is Origin.KUBERNETES:
        return f"the annotation {PROFILE_ANNOTATIONS[0]}: <id> would choose a profile"
    if pod.origin is Origin.WORKLOAD:
        return "profile = in its [[workloads]] rule, or temper run --profile, would choose one"
    return "a [[workloads]] rule for it with profile = would choose a profile"


def _yield_changes(plan: LayerPlan, assignment: Assignment) -> Iterator[str]:
    subjects = {note.subject for note in plan.notes if note.code == "group_yields"}
    if assignment.profile is None:
        return
    profile = assignment.profile.profile
    for group in profile.thread_groups:
        if layer_name(profile.id, group.name, assignment.tier) in subjects:
            yield (
                f'group {group.name} of profile {profile.id} with treatment = "normal" would keep '
                f"the main thread, and all that no other group takes, in {assignment.tier}"
            )


def _tier_changes(assignment: Assignment, settings: Settings) -> Iterator[str]:
    if assignment.pod.origin is Origin.KUBERNETES:
        yield from _priority_changes(assignment, settings)
    elif assignment.pod.origin is Origin.WORKLOAD:
        yield "tier = in its [[workloads]] rule, or temper run --tier, sets the tier"
    else:
        yield "a [[workloads]] rule for it with tier = would set the tier"


def _priority_changes(assignment: Assignment, settings: Settings) -> Iterator[str]:
    pod, mapping = assignment.pod, settings.priority_mapping
    if pod.tier is not None:
        yield "the tier is set by that rule; priorities have no effect"
        return
    if pod.qos_class is QosClass.BEST_EFFORT and not (pod.priority or pod.priority_class):
        yield "a CPU or memory request, or any PriorityClass of value 0, would make it normal"
    higher = list(Tier)[: assignment.tier.rank]
    if higher and not assignment.is_system:
        steps = (f"{getattr(mapping, tier.value)} {tier}" for tier in reversed(higher))
        yield f"a PriorityClass would raise it, from this value on: {', '.join(steps)}"


def _size_changes(place: ExplainedPlace, tier: Tier, capacity: Capacity) -> Iterator[str]:
    if place.demoted and place.kind is LayerKind.GROUPED:
        most = counted(capacity.fenceable * capacity.unit, "CPU")
        yield f"{place.layer} is fenced where its requests need at most {most} in sum"
    elif place.layer == tier.value and place.cpus_min:
        step = place.cpus_min * MILLIS
        yield f"over {step}m of requests in sum, {place.layer} needs one more core"
