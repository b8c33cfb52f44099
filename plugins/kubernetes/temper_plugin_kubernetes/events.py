"""Kubernetes events of a snapshot, each once for as long as its cause lasts."""

from collections.abc import Iterator, Mapping
from zlib import crc32

from attrs import frozen

from temper_core import LayerPlan, Mode, Origin, Pod, Snapshot

LONGEST_MESSAGE = 1000
COMPONENT = "temper-agent"
NODE_NAMESPACE = "default"
PROFILE_NOT_APPLIED = "profile_not_applied"


@frozen
class EventSubject:
    """The object of an event: a pod, or the node, which has no namespace."""

    kind: str
    name: str
    uid: str
    namespace: str = ""


@frozen
class NodeEvent:
    """An event about ``subject``. ``reason`` is one word in CamelCase."""

    subject: EventSubject
    reason: str
    message: str
    is_warning: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the event: its subject and reason, without the message."""
        return self.subject.uid or self.subject.name, self.reason

    @property
    def name(self) -> str:
        """The name of its Event object: the same for the same subject and reason."""
        story = crc32(f"{self.subject.uid}/{self.reason}".encode())
        return f"{self.subject.name[:200].rstrip('-.')}.temper-{story:08x}"


def happenings(
    snapshot: Snapshot, node: EventSubject, uids: Mapping[str, str]
) -> Iterator[NodeEvent]:
    """Yield the current events. *uids* are API server uids of pods whose cgroups have another."""
    status = snapshot.status
    if status.mode is Mode.SAFE_MODE:
        message = f"safe mode ({status.reason}): {status.detail}"
        yield NodeEvent(node, "SafeMode", message[:LONGEST_MESSAGE])
    elif status.mode is Mode.ENFORCING:
        message = f"{status.engine or 'the engine'} enforces tiers on this node"
        yield NodeEvent(node, "Enforcing", message, is_warning=False)
    if snapshot.plan is not None and status.mode in (Mode.ENFORCING, Mode.RELOADING):
        yield from _of_pods(snapshot.plan, uids)


def _of_pods(plan: LayerPlan, uids: Mapping[str, str]) -> Iterator[NodeEvent]:
    pods = {a.pod.key: a.pod for a in plan.assignments if _is_known_to_the_cluster(a.pod)}
    for layer in plan.layers:
        if layer.demoted:
            message = f"layer {layer.name} is not fenced on this node: {layer.reason}"
            for key in dict.fromkeys((*layer.members, *layer.group_members)):
                if key in pods:
                    yield _of(pods[key], uids, "Demoted", message)
    for note in plan.notes:
        if note.code == PROFILE_NOT_APPLIED and note.subject in pods:
            yield _of(pods[note.subject], uids, "ProfileNotApplied", note.message)


def _is_known_to_the_cluster(pod: Pod) -> bool:
    # A pod found by its cgroup alone has no namespace for an event.
    return pod.origin is Origin.KUBERNETES and bool(pod.namespace)


def _of(pod: Pod, uids: Mapping[str, str], reason: str, message: str) -> NodeEvent:
    subject = EventSubject("Pod", pod.name, uids.get(pod.uid, pod.uid), pod.namespace)
    return NodeEvent(subject, reason, message[:LONGEST_MESSAGE])


def event_object(happening: NodeEvent, at: str, host: str) -> dict[str, object]:
    """Return the body of a core/v1 Event. *at* is RFC 3339, *host* the node's name."""
    subject = happening.subject
    namespace = subject.namespace or NODE_NAMESPACE
    involved = {"kind": subject.kind, "name": subject.name, "uid": subject.uid, "apiVersion": "v1"}
    if subject.namespace:
        involved["namespace"] = subject.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": happening.name, "namespace": namespace},
        "involvedObject": involved,
        "reason": happening.reason,
        "message": happening.message,
        "type": "Warning" if happening.is_warning else "Normal",
        "source": {"component": COMPONENT, "host": host},
        "reportingComponent": COMPONENT,
        "reportingInstance": host,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
