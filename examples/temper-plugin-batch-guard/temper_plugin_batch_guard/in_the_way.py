"""The invariant, which yields a finding for each thread that waits for a batch job."""

from collections import defaultdict
from collections.abc import Iterator

from temper_core import Finding, Snapshot, ThreadSample, Tier
from temper_plugin_batch_guard.limits import Limits

IMPORTANT = (Tier.CRITICAL, Tier.HIGH)
FIX = "lower the jobs' tier, or give their threads the treatment yield in their profile"


def batch_in_the_way(snapshot: Snapshot, limits: Limits) -> Iterator[Finding]:
    """Find important threads that wait for a CPU while batch jobs use it."""
    jobs = {(pod.namespace, pod.pod) for pod in snapshot.pods if pod.profile == limits.profile}
    busy: defaultdict[int, list[ThreadSample]] = defaultdict(list)
    for thread in snapshot.threads:
        if (thread.namespace, thread.pod) in jobs:
            busy[thread.cpu].append(thread)
    for thread in snapshot.threads:
        used = sum(other.cpu_used for other in busy[thread.cpu])
        is_important = thread.tier in IMPORTANT and (thread.namespace, thread.pod) not in jobs
        if is_important and thread.run_delay_ratio >= limits.waiting and used >= limits.batch_cpus:
            names = ", ".join(sorted({other.pod for other in busy[thread.cpu]}))
            yield Finding(
                f"{thread.pod} {thread.comm}",
                f"[{thread.tid}] waits {thread.run_delay_ratio:.0%} of the time for CPU "
                f"{thread.cpu}, of which {names} uses {used:.2f}",
                FIX,
                {"waiting": thread.run_delay_ratio, "batch_cpus": used, "cpu": thread.cpu},
            )
