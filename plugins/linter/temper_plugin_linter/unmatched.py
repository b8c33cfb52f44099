"""Gaps of profiles: hot threads that no group names, and pods without their profile."""

from collections.abc import Iterator

from temper_core import (
    Assignment,
    Finding,
    Snapshot,
    ThreadIdentity,
    ThreadSample,
    Treatment,
    takes_by_name,
)
from temper_plugin_linter.names import busiest, by_subject, by_use, owner_of
from temper_plugin_linter.placement import Placement, cpu_used, pod_key

FIX = (
    "add a thread group for this name to the profile ('temper profiles' shows the file; versions "
    "of the program rename their threads), or give the pod another profile"
)

NOT_APPLIED_FIX = {
    "unknown_id": "correct the id, or give the node a profile of that id",
    "not_loaded": "correct the profile: 'temper profiles lint' names every mistake in it",
    "shape": "tune the profile on such a machine, and give it that machine_shape",
    "version": "give the image a tag with its version, or name the profile in an annotation",
}
"""The remedies by the code of the reason."""


def unmatched_hot_thread(placement: Placement) -> Iterator[Finding]:
    """Find hot threads of profiled pods that no group of the profile names.

    Threads of a last group that takes all others count if that group yields: it is meant for
    threads that use little CPU. A match by more than names cannot be evaluated from a sample, so
    threads whose names fit such a match are not judged.
    """
    plan = placement.snapshot.plan
    if plan is None or not placement.threads.hot:
        return
    profiled = {pod_key(pod) for pod in placement.snapshot.pods if pod.profile}
    hot = [thread for thread in placement.threads.hot if pod_key(thread) in profiled]
    if not hot:
        return
    by_pod = {
        assignment.pod.key: assignment for assignment in plan.assignments if assignment.profile
    }
    unknown = [
        thread
        for thread in hot
        if (assignment := by_pod.get(pod_key(thread))) and _is_unknown(thread, assignment)
    ]
    for subject, threads in by_subject(unknown).items():
        yield _finding(subject, threads, placement.snapshot, placement.limits.hot_cpu)


def profile_not_applied(placement: Placement) -> Iterator[Finding]:
    """Find pods that select a profile and run without one."""
    for pod in placement.snapshot.pods:
        if pod.profile_code and not pod.profile:
            yield Finding(
                pod_key(pod),
                f"runs without its selected profile: {pod.profile_reason}",
                NOT_APPLIED_FIX.get(pod.profile_code, "see 'temper profiles explain'"),
                {"reason": pod.profile_code},
            )


def _is_unknown(thread: ThreadSample, assignment: Assignment) -> bool:
    if assignment.profile is None or not _is_meant(thread, assignment):
        return False
    groups = assignment.profile.profile.thread_groups
    if takes_by_name(groups, _identity(thread)) is not False:
        return False
    rest = groups[-1]
    return bool(rest.match) or rest.treatment is Treatment.YIELD


def _is_meant(thread: ThreadSample, assignment: Assignment) -> bool:
    """Whether the profile covers the thread's container, not a sidecar of the pod."""
    fingerprint = assignment.profile.profile.fingerprint if assignment.profile else None
    processes = fingerprint.processes if fingerprint else ()
    return len(assignment.pod.containers) <= 1 or thread.process in processes


def _identity(thread: ThreadSample) -> ThreadIdentity:
    is_leader = thread.tid == thread.tgid
    return ThreadIdentity(thread.cgroup, thread.comm, thread.process, is_leader=is_leader)


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
        owner_of(worst),
    )
