"""When a node may become an eco node: not while a pod on it would suffer."""

from enum import StrEnum

from attrs import frozen

from temper_plugin_power.classifier.hints import Hints
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.operating.buckets import Bucket
from temper_plugin_power.standing import standing_of

MOVABLE = "migratability.reschedulable"


class Cause(StrEnum):
    """Why a pod keeps its node from becoming an eco node."""

    CONSTRAINT = "performance-only"
    CLASS = "performance-class"
    NOT_MOVABLE = "not-reschedulable"


class State(StrEnum):
    """The state of a node."""

    PERFORMANCE = "ActivePerformance"
    DRAINING = "DrainingPerformance"
    ECO = "ActiveEco"
    UNKNOWN = "Unknown"


@frozen
class NodePod:
    """A running pod of a node."""

    bucket: Bucket
    hints: Hints
    profile: PowerProfile | None = None
    """Of its workload."""
    is_bound_to_node: bool = False
    """It cannot be anywhere else."""


@frozen
class Transition:
    """The next state of a node, and what is in force until then."""

    desired: str
    """performance or eco."""
    in_force: str
    """The profile whose caps and label the node has: eco after the last blocking pod only."""
    is_draining: bool
    state: State


def blocking_cause(pod: NodePod) -> Cause | None:
    """Return why *pod* blocks the transition to eco, None if it does not.

    Only an explicit ``reschedulable: false`` blocks, since a default would hold every node.
    """
    if pod.bucket is Bucket.PERFORMANCE:
        return Cause.CONSTRAINT
    if standing_of(pod.hints, pod.profile).workload_class == "performance":
        return Cause.CLASS
    if pod.is_bound_to_node or _may_be_moved(pod.hints, pod.profile):
        return None
    return Cause.NOT_MOVABLE


def _may_be_moved(hints: Hints, profile: PowerProfile | None) -> bool:
    """Return whether no annotation or profile requires that the pod stays."""
    if hints.reschedulable is not None:
        return hints.reschedulable
    return profile is None or profile.reschedulable or not profile.is_explicit(MOVABLE)


def transition(desired: str, in_force: str, blocking: int | None) -> Transition:
    """Return the next step of a node with that many *blocking* pods, None if they are not known.

    *in_force* is the profile of its caps and label now; unknown counts as performance.
    """
    if desired == "performance":
        return Transition(desired, desired, is_draining=False, state=State.PERFORMANCE)
    if desired != "eco":
        return Transition(desired, in_force, is_draining=False, state=State.UNKNOWN)
    if blocking == 0:
        return Transition(desired, desired, is_draining=False, state=State.ECO)
    kept = "eco" if in_force == "eco" else "performance"
    if blocking is None and kept == "eco":
        return Transition(desired, kept, is_draining=False, state=State.ECO)
    return Transition(desired, kept, is_draining=True, state=State.DRAINING)
