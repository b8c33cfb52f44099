"""``rt_hog``: no real-time thread monopolises a CPU."""

from collections.abc import Iterator

from temper_core import Finding
from temper_plugin_linter.names import busiest, by_subject, by_use, owner_of
from temper_plugin_linter.placement import Placement, cpu_used

THREAD_FIX = (
    "all other threads of that CPU wait for it, under the engine too: make it an ordinary thread "
    "of a critical pod (chrt -o -p 0 TID), or let it sleep between its deadlines"
)
KERNEL_FIX = (
    "it is a kernel thread (of an interrupt, for example): spread the interrupts over more CPUs "
    "(/proc/irq/*/smp_affinity), or lower their rate"
)


def rt_hog(placement: Placement) -> Iterator[Finding]:
    """Find FIFO and RR threads that use much of a CPU. They run before every sched_ext thread."""
    limit = placement.limits.rt_cpu
    hogs = [thread for thread in placement.threads.real_time if thread.cpu_used >= limit]
    for subject, threads in by_subject(hogs).items():
        worst = by_use(threads)[0]
        yield Finding(
            subject,
            f"{worst.policy} thread of priority {worst.rt_priority} uses {worst.cpu_used:.2f} of "
            f"CPU {worst.cpu}: {busiest(threads)}",
            KERNEL_FIX if worst.is_kthread else THREAD_FIX,
            {
                "cpu": worst.cpu,
                "cpu_used": cpu_used(threads),
                "threads": len(threads),
                "policy": worst.policy,
                "rt_priority": worst.rt_priority,
                "limit": limit,
            },
            owner_of(worst),
        )
