"""Threads as the kernel side tells of them, and a node whose plan has a pod for some."""

from temper_core.records.engine_matchers import Matcher
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.snapshots import Mode, Snapshot, Status, ThreadSample
from temper_core.records.tiers import LayerKind, Tier
from temper_plugin_tracer.kernel_records import BUCKETS, COUNTS, PartyRecord

WEB_CGROUP = "kubepods/pod1/"
PLAN = LayerPlan(
    MachineShape.uniform(4),
    (
        Layer("critical", LayerKind.CONFINED, ((Matcher("CgroupPrefix", WEB_CGROUP),),)),
        Layer("open", LayerKind.OPEN, ((),)),
    ),
    (Assignment(Pod("1", "shop", "web", cgroups=(WEB_CGROUP,)), Tier.CRITICAL, "priority"),),
)


def record(comm="worker", *, cgroup=7, tgid=10, flags=0, waits=(), process="server"):
    """Say of a thread what the kernel side would; *waits* are counts of the first buckets."""
    counts = (*waits, *(0,) * (BUCKETS - len(waits)))
    names = (name.encode().ljust(16, b"\0") for name in (comm, process))
    waited_ns = sum(count << place for place, count in enumerate(counts)) * 500
    return PartyRecord(cgroup, tgid, flags, 0, *names, waited_ns, COUNTS.pack(*counts))


def sample(tid, *, tgid=10, cgroup=f"{WEB_CGROUP}c1/", layer="", comm="worker"):
    """Say of a thread what a snapshot would."""
    return ThreadSample(tid, tgid, comm, "server", 1, 0, 0.1, 0.0, cgroup=cgroup, layer=layer)


def a_snapshot(*threads, mode=Mode.ENFORCING, plan=PLAN):
    return Snapshot(0.0, 0.0, 1.0, "n", PLAN.machine, Status(mode), threads=threads, plan=plan)
