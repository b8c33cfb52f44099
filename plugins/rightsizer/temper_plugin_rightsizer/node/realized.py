"""The realized savings of a window: work on CPUs that others requested, and requests freed."""

import json
from collections.abc import Iterable, Mapping

from temper_core import InputError, Pod, PodSample, Tier, cpu_millis

ORIGINALS = "temper.codes/original-cpu-requests"
"""The annotation in which the overcommit webhook keeps the requests that it lowered."""
LONGEST = 64 * 1024
MILLIS = 1000


def reclaimed(
    samples: Iterable[PodSample], requests: Mapping[str, int], cpus: int
) -> Mapping[str, float]:
    """Return the reclaimed CPUs that each background pod ran on in a window, by uid.

    *requests* are the CPU requests of all pods of the node in millicores, by uid. A pod ran on
    reclaimed CPUs with what it used above its own request. Of that the CPUs of the node that no pod
    requests are taken away, and no more counts than the other pods left of their requests. So the
    sum is a lower bound: max(0, min(above - unrequested, left)).
    """
    above: dict[str, float] = {}
    left = 0.0
    for sample in samples:
        over = sample.cpu_used - requests.get(sample.uid, 0) / MILLIS
        if sample.tier is Tier.BACKGROUND and over > 0:
            above[sample.uid] = over
        else:
            left += max(-over, 0.0)
    total = sum(above.values())
    unrequested = max(cpus - sum(requests.values()) / MILLIS, 0.0)
    sure = max(min(total - unrequested, left), 0.0)
    return {uid: over * sure / total for uid, over in above.items()} if sure else {}


def freed_millis(pod: Pod, most: int) -> Mapping[str, int]:
    """Return by how much the CPU requests of a pod were lowered, by container.

    The author of a pod may write the annotation. So malformed text counts nothing, and a request
    counts *most* millicores at most, which is all that a node can have.
    """
    text = pod.annotations.get(ORIGINALS, "")
    if not text or len(text) > LONGEST:
        return {}
    try:
        originals = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(originals, dict):
        return {}
    freed = {}
    for container in pod.containers:
        before = _millis(originals.get(container.name))
        if before is not None and before > container.cpu_request_millis:
            freed[container.name] = min(before, most) - min(container.cpu_request_millis, most)
    return freed


def _millis(text: object) -> int | None:
    try:
        return cpu_millis(text) if isinstance(text, str) else None
    except InputError:
        return None
