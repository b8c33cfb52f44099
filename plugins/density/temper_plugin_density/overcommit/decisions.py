"""Decides whether a pod's CPU requests are lowered, how far, and why."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from temper_plugin_density.overcommit import originals
from temper_plugin_density.overcommit.names import ORIGINALS
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.patches import annotate, replace_request
from temper_plugin_density.overcommit.pod_objects import CpuRequest, PodObject
from temper_plugin_density.overcommit.policy import LEAST_MILLIS, Policy
from temper_plugin_density.overcommit.sparing import why_spared


@frozen
class RequestChange:
    """One container's CPU request: the original, the current and the new value."""

    request: CpuRequest
    original: str
    after_millis: int

    @property
    def is_lowered(self) -> bool:
        """Whether the pod runs, or will run, with less than its original request."""
        return self.is_new or self.original != self.request.text

    @property
    def is_new(self) -> bool:
        """Whether this decision lowers the request."""
        return self.after_millis != self.request.millis


@frozen
class AdmissionDecision:
    """The outcome for a pod, with its reason. Without a patch the pod stays unchanged."""

    outcome: Outcome
    reason: str
    patch: Sequence[Mapping[str, Any]] = ()
    changes: tuple[RequestChange, ...] = ()
    freed_millis: int = 0


def decide(pod: PodObject, policy: Policy) -> AdmissionDecision:
    """Decide about *pod*."""
    if spared := why_spared(pod, policy):
        return AdmissionDecision(*spared, changes=_untouched(pod.requests))
    claims = originals.claimed(pod.pod.annotations)
    changes = tuple(
        _change(request, claims.get(request.container), policy) for request in pod.requests
    )
    kept = {change.request.container: change.original for change in changes if change.is_lowered}
    if not kept:
        why = "the factor is 1" if policy.factor == 1 else f"none is more than {LEAST_MILLIS}m"
        reason = f"no CPU request can be lowered: {why}"
        return AdmissionDecision(Outcome.NOTHING_TO_LOWER, reason, changes=changes)
    if not any(change.is_new for change in changes) and claims == kept:
        reason = f"its requests are lowered already, according to {ORIGINALS}"
        return AdmissionDecision(Outcome.ALREADY_LOWERED, reason, changes=changes)
    return _lower(pod, policy, changes, originals.written(kept))


def _lower(
    pod: PodObject, policy: Policy, changes: tuple[RequestChange, ...], annotation: str
) -> AdmissionDecision:
    if not originals.fits(pod.pod.annotations, annotation):
        reason = "its annotations leave no room for its original requests"
        return AdmissionDecision(Outcome.NO_ROOM, reason, changes=_untouched(pod.requests))
    new = [change for change in changes if change.is_new]
    patch = [replace_request(change.request.place, change.after_millis) for change in new]
    patch.append(annotate(annotation, has_annotations=pod.has_annotations))
    after = pod.millis_with({change.request.place: change.after_millis for change in new})
    freed = pod.pod.cpu_request_millis - after
    if not new:
        reason = f"its requests are lowered already; {ORIGINALS} is corrected"
        return AdmissionDecision(Outcome.ALREADY_LOWERED, reason, patch, changes)
    summary = f"{len(new)} of {len(changes)} CPU requests lowered to {float(policy.factor):g}"
    return AdmissionDecision(Outcome.LOWERED, f"{summary}: {freed}m freed", patch, changes, freed)


def _untouched(requests: Iterable[CpuRequest]) -> tuple[RequestChange, ...]:
    return tuple(RequestChange(request, request.text, request.millis) for request in requests)


def _change(request: CpuRequest, claim: str | None, policy: Policy) -> RequestChange:
    """Lower one request, unless it is already the lowered value of its annotated original."""
    millis = originals.claimed_millis(claim)
    is_lowered = (
        millis is not None and millis > request.millis and policy.lowered(millis) == request.millis
    )
    if claim is not None and is_lowered:
        return RequestChange(request, claim, request.millis)
    return RequestChange(request, request.text, policy.lowered(request.millis))
