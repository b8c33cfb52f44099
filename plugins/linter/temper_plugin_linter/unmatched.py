"""``unmatched_hot_thread``: a profile knows every hot thread of its pods."""

from collections.abc import Iterator

from temper_core import (
    Assignment,
    Finding,
    Snapshot,
    ThreadGroup,
    ThreadIdentity,
    ThreadSample,
    Treatment,
    matches,
)
from temper_plugin_linter.names import busiest, by_subject, by_use
from temper_plugin_linter.placement import Placement, cpu_used, pod_key

FIX = (
    "give the profile a thread group for this name ('temper profiles' shows the file; versions of "
    "the program rename their threads), or another profile to the pod"
)


def unmatched_hot_thread(placement: Placement) -> Iterator[Finding]:
    """Find hot threads of profiled pods that no group of the profile names.

    Threads left to a last group that takes everybody count where that group yields: it was meant
    for threads that do little. A match by title or behaviour cannot be held against a sample, so
    profiles that have one are not judged.
    """
    plan = placement.snapshot.plan
    if plan is None or not placement.threads.hot:
        return
    profiled = {pod_key(pod) for pod in placement.snapshot.pods if pod.profile}
    hot = [thread for thread in placement.threads.hot if pod_key(thread) in profiled]
    if not hot:
        return
    by_pod = {each.pod.key: each for each in plan.assignments if each.profile}
    unknown = [
        thread
        for thread in hot
        if (assignment := by_pod.get(pod_key(thread))) and _is_unknown(thread, assignment)
    ]
    for subject, threads in by_subject(unknown).items():
        yield _finding(subject, threads, placement.snapshot, placement.limits.hot_cpu)


def _is_unknown(thread: ThreadSample, assignment: Assignment) -> bool:
    if assignment.profile is None or not _is_meant(thread, assignment):
        return False
    groups = assignment.profile.profile.thread_groups
    needs_sight = any(m.title_pattern or m.behaviour for group in groups for m in group.match)
    if needs_sight or any(_takes(group, thread) for group in groups):
        return False
    rest = groups[-1]
    return bool(rest.match) or rest.treatment is Treatment.YIELD


def _is_meant(thread: ThreadSample, assignment: Assignment) -> bool:
    """Whether the profile is about the thread's container; another's threads are none of it."""
    fingerprint = assignment.profile.profile.fingerprint if assignment.profile else None
    processes = fingerprint.processes if fingerprint else ()
    return len(assignment.pod.containers) <= 1 or thread.process in processes


def _takes(group: ThreadGroup, thread: ThreadSample) -> bool:
    identity = ThreadIdentity(
        thread.cgroup, thread.comm, thread.process, is_leader=thread.tid == thread.tgid
    )
    return any(matches(match, identity) for match in group.match)


def _finding(
    subject: str, threads: list[ThreadSample], snapshot: Snapshot, hot_cpu: float
) -> Finding:
    worst = by_use(threads)[0]
    profile = next(
        (pod.profile for pod in snapshot.pods if pod_key(pod) == pod_key(worst)), "unknown"
    )
    return Finding(
        subject,
        f"uses {worst.cpu_used:.2f} CPUs, but no thread group of profile {profile!r} names it: "
        f"{busiest(threads)}",
        FIX,
        {
            "profile": profile,
            "threads": len(threads),
            "cpu_used": cpu_used(threads),
            "limit": hot_cpu,
        },
    )
