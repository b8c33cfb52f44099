"""What is kept of pods that anybody with the right to create pods may have made.

Such a user can name any node, and the API server binds the pod to it at once. Only the node's
kubelet limits the number of its pods. It writes ``status.startTime`` when it has accepted one
(Kubernetes API reference, PodStatus).
"""

from attrs import evolve

from temper_core import Pod
from temper_kube.list_pages import Json

MOST_ANNOTATION_CHARACTERS = 16 * 1024
"""Of one pod, the short ones first. The API server takes 256 KiB."""
MOST_UNACCEPTED_CHARACTERS = 4 * 1024 * 1024
"""Of all pods together that no kubelet has accepted: some 2,000 of ordinary size."""
POD_CHARACTERS, CONTAINER_CHARACTERS = 1024, 512
"""What a pod and a container count without their texts."""


def bounded(pod: Pod) -> Pod:
    """Return *pod* with annotations within ``MOST_ANNOTATION_CHARACTERS``."""
    kept: dict[str, str] = {}
    left = MOST_ANNOTATION_CHARACTERS
    for name, value in sorted(pod.annotations.items(), key=lambda each: len(each[0] + each[1])):
        left -= len(name) + len(value)
        if left < 0:
            break
        kept[name] = value
    return pod if len(kept) == len(pod.annotations) else evolve(pod, annotations=kept)


def characters(pod: Pod) -> int:
    """Return what *pod* counts towards ``MOST_UNACCEPTED_CHARACTERS``."""
    texts = sum(
        len(key) + len(value)
        for each in (pod.annotations, pod.labels)
        for key, value in each.items()
    )
    containers = sum(CONTAINER_CHARACTERS + len(each.image) for each in pod.containers)
    return POD_CHARACTERS + texts + containers


def is_unaccepted(item: Json) -> bool:
    """Whether the pod is Pending, and its node's kubelet has not accepted it."""
    status = item.get("status")
    return is_pending(item) and isinstance(status, dict) and not status.get("startTime")


def is_pending(item: Json) -> bool:
    """Whether no container of the pod has run yet."""
    status = item.get("status")
    return isinstance(status, dict) and status.get("phase") == "Pending"
