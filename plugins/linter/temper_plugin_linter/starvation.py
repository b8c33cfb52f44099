"""``starvation``: no runnable thread waits for a CPU for long."""

from collections.abc import Iterator

from temper_core import Finding, ThreadSample
from temper_plugin_linter.names import by_subject, listed, owner_of, thread_name
from temper_plugin_linter.placement import Placement, pod_key

WILLING = frozenset({"idle"})
ALMOST_ALL = 0.98
ALMOST_NOTHING = 0.005
BOUND_FIX = (
    "it may run on CPUs {cpus} only, which other threads do not release: remove the binding, or "
    "look for rt_hog there"
)
FIX = (
    "look for rt_hog and antagonist on its CPU, and in 'temper top' for the threads that use the "
    "CPUs; a thread that waits 30 s makes the kernel eject the engine"
)


def starvation(placement: Placement) -> Iterator[Finding]:
    """Find threads that wait too long at a time, under any scheduler.

    SCHED_IDLE threads are left out, because they run only on idle CPUs. So are threads of a pod
    that the kernel throttled in the window, because they wait for their quota.
    """
    limit, window_s = placement.limits.starved_s, placement.snapshot.window_s
    waits = {
        thread.tid: wait_s
        for thread in placement.threads.waiting
        if (wait_s := longest_wait_s(thread, window_s)) >= limit and _minds(thread, placement)
    }
    starved = [thread for thread in placement.threads.waiting if thread.tid in waits]
    for subject, threads in by_subject(starved).items():
        worst = max(threads, key=lambda thread: waits[thread.tid])
        yield Finding(
            subject,
            f"waited {waits[worst.tid]:.1f} s for a CPU and used {worst.cpu_used:.3f}: "
            f"{thread_name(worst)}, last on CPU {worst.cpu}",
            BOUND_FIX.format(cpus=listed(worst.affinity)) if worst.affinity else FIX,
            {
                "waited_s": waits[worst.tid],
                "run_delay_ratio": worst.run_delay_ratio,
                "cpu_used": worst.cpu_used,
                "threads": len(threads),
                "cpu": worst.cpu,
                "limit": limit,
            },
            owner_of(worst),
        )


def longest_wait_s(thread: ThreadSample, window_s: float) -> float:
    """Return a lower bound of the thread's longest wait in one sample.

    If the tier of observation counts runs, it is the mean of the waits. Without a count, only a
    thread that waited nearly all of the window and hardly ran has a wait.
    """
    delayed_s = thread.run_delay_ratio * window_s
    if thread.runs >= 0:
        return max(thread.waiting_s, delayed_s / max(1, thread.runs))
    waited_through = thread.run_delay_ratio >= ALMOST_ALL and thread.cpu_used <= ALMOST_NOTHING
    return max(thread.waiting_s, delayed_s if waited_through else 0.0)


def _minds(thread: ThreadSample, placement: Placement) -> bool:
    if thread.policy in WILLING:
        return False
    pod = placement.pods.get(pod_key(thread)) if thread.pod else None
    return pod is None or pod.throttled_ratio == 0.0
