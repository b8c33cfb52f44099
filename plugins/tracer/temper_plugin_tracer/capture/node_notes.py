"""The agent's knowledge of the node during a capture, as JSON for the helper process."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from temper_core import (
    Event,
    NodeLookup,
    PodSample,
    Snapshot,
    ThreadGroup,
    ThreadIdentity,
    ThreadSample,
)
from temper_plugin_tracer.capture.choosing import unified_root

MOST_LOOKS = 16
MOST_EVENTS = 512
MOST_PODS = 64
MOST_CHILDREN = 256
"""Cgroups of containers below a pod's. Its owner may make any number of them."""
MOST_VIOLATIONS = 64
MOST_THREADS = 20_000


def look_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return the facts of the node at the moment of *snapshot*, for a trace."""
    busiest = sorted(snapshot.pods, key=lambda pod: pod.cpu_used + pod.run_delay, reverse=True)
    return {
        "ns": boot_ns_of(snapshot.monotonic_s),
        "mode": str(snapshot.status.mode),
        "reason": snapshot.status.reason or snapshot.status.detail,
        "generation": snapshot.status.generation,
        "layers": [
            {
                "name": layer.name,
                "kind": str(layer.kind),
                "tier": str(layer.tier or ""),
                "cpus": list(layer.cpus),
                "cpus_used": layer.cpus_used,
            }
            for layer in snapshot.layers
        ],
        "pods": [_pod(pod) for pod in busiest[:MOST_PODS]],
        "violations": [
            {
                "id": violation.id,
                "invariant": violation.invariant,
                "subject": violation.subject,
                "message": violation.message,
            }
            for violation in snapshot.violations[:MOST_VIOLATIONS]
        ],
    }


def event_note(event: Event) -> dict[str, Any]:
    """Return *event* for a trace. Its time is exact if the wall clock was not set since."""
    age_ns = time.time_ns() - int(event.at * 1e9)
    return {
        "ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME) - age_ns,
        "kind": event.kind,
        "subject": event.subject,
        "facts": {
            name: text
            for name in ("reason", "source", "requester", "outcome")
            if (text := getattr(event, name))
        },
    }


def notes(
    looks: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    snapshot: Snapshot | None,
    lookup: NodeLookup,
) -> dict[str, Any]:
    """Return all that the helper writes into a trace of the node.

    These are looks at it, its events, its threads and its cgroups.
    """
    threads = snapshot.threads[:MOST_THREADS] if snapshot is not None else ()
    return {
        "looks": list(looks),
        "events": list(events),
        "threads": [_thread(thread, lookup) for thread in threads if thread.pod or thread.layer],
        "cgroups": _cgroups(lookup),
    }


def boot_ns_of(monotonic_s: float) -> int:
    """Return the CLOCK_BOOTTIME of a moment of CLOCK_MONOTONIC.

    They differ by the time that the machine was suspended.
    """
    offset = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(
        time.CLOCK_MONOTONIC
    )
    return int(monotonic_s * 1e9) + offset


def _pod(pod: PodSample) -> dict[str, Any]:
    return {
        "key": f"{pod.namespace}/{pod.pod}" if pod.namespace else pod.pod,
        "tier": str(pod.tier),
        "cpu_used": pod.cpu_used,
        "run_delay": pod.run_delay,
        "throttled_ratio": pod.throttled_ratio,
    }


def _thread(thread: ThreadSample, lookup: NodeLookup) -> list[Any]:
    """Return tid, tgid, pod, group, tier and layer."""
    pod = f"{thread.namespace}/{thread.pod}" if thread.namespace else thread.pod
    group: ThreadGroup | None = None
    if pod:
        identity = ThreadIdentity(
            thread.cgroup,
            thread.comm,
            thread.process,
            thread.uid,
            thread.is_kthread,
            thread.tid == thread.tgid,
        )
        group = lookup.thread_group_of(pod, identity)
    name = group.name if group is not None else ""
    return [thread.tid, thread.tgid, pod, name, str(thread.tier or ""), thread.layer]


def _cgroups(lookup: NodeLookup) -> dict[str, list[str]]:
    """Return pod and tier by the ids of the pods' cgroups and of those below them."""
    root = unified_root()
    plan = lookup.plan
    if root is None or plan is None:
        return {}
    found: dict[str, list[str]] = {}
    for assignment in plan.assignments:
        entry = [assignment.pod.key, str(assignment.tier)]
        for path in assignment.pod.cgroups:
            with suppress(OSError):
                found.update({str(inode): entry for inode in _inodes(root / path.strip("/"))})
    return found


def _inodes(directory: Path) -> list[int]:
    """Return the ids of a cgroup and of its first children, which are those of its containers."""
    with os.scandir(directory) as entries:
        children = (entry.stat().st_ino for entry in entries if entry.is_dir())
        return [directory.stat().st_ino, *islice(children, MOST_CHILDREN)]
