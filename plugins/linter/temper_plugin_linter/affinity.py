"""``stale_affinity``: no thread is bound to CPUs that contradict the plan."""

from collections.abc import Iterator

from attrs import frozen

from temper_core import Finding, LayerSample, PodSample, ThreadSample
from temper_plugin_linter.names import busiest, by_subject, by_use, inferred, listed, owner_of
from temper_plugin_linter.placement import Placement, cpu_used, pod_key

UNBIND_FIX = (
    "remove the binding (taskset -p, the program's own setting, numactl): the engine cannot run a "
    "thread on CPUs outside its affinity"
)
CPUSET_FIX = (
    "remove the cpuset (kubelet's static CPU manager, --cpuset-cpus, cpuset.cpus), or keep the pod "
    "off enforcing nodes: the engine cannot run a thread on CPUs outside its cpuset"
)


@frozen
class _Fences:
    """CPUs of layers: owned at any time, and by protected layers all the time."""

    grounds: dict[str, frozenset[int]]
    fenced: dict[str, frozenset[int]]

    def fault(self, layer: str, allowed: frozenset[int]) -> str:
        """Return the fault of a binding to *allowed* in *layer*. Empty if there is none."""
        own = self.grounds.get(layer, frozenset())
        if own and own.isdisjoint(allowed) and layer in self.fenced:
            return f"may not run on any CPU of its layer {layer!r} ({listed(own)})"
        others = {name: cpus & allowed for name, cpus in self.fenced.items() if name != layer}
        if allowed <= frozenset().union(*others.values()):
            names = ", ".join(sorted(name for name, cpus in others.items() if cpus))
            return f"may run only on CPUs that are fenced off for {names}"
        return ""


def stale_affinity(placement: Placement) -> Iterator[Finding]:
    """Find threads bound, and pods confined by a cpuset, to CPUs that their layer does not own.

    A binding is a fault if it excludes all CPUs of the thread's own protected layer, or allows only
    CPUs of other protected layers. Kernel threads are not judged: many are bound by design.
    """
    if not placement.is_judged:
        return
    confined = [pod for pod in placement.snapshot.pods if pod.cpuset]
    if not confined and not placement.threads.bound:
        return
    fences = _fences(placement)
    faulty_cpusets = {}
    for pod in confined:
        for finding in _confined(pod, fences, placement):
            faulty_cpusets[pod_key(pod)] = pod.cpuset
            yield finding
    idle_cpu = placement.limits.idle_cpu
    bound = [
        thread
        for thread in placement.threads.bound
        if thread.cpu_used >= idle_cpu
        and not thread.is_kthread
        and faulty_cpusets.get(pod_key(thread)) != thread.affinity
    ]
    for subject, threads in by_subject(bound).items():
        yield from _bound(subject, threads, fences)


def _confined(pod: PodSample, fences: _Fences, placement: Placement) -> Iterator[Finding]:
    layer = placement.facts.layer_by_pod.get(pod_key(pod), "")
    fault = fences.fault(layer, frozenset(pod.cpuset))
    if fault and pod.cpu_used >= placement.limits.idle_cpu:
        yield Finding(
            f"{pod_key(pod)} cpuset",
            f"confined to CPUs {listed(pod.cpuset)}, it {fault}",
            CPUSET_FIX,
            {"cpuset": listed(pod.cpuset), "layer": layer, "cpu_used": pod.cpu_used},
        )


def _bound(subject: str, threads: list[ThreadSample], fences: _Fences) -> Iterator[Finding]:
    faults = [
        (thread, fault)
        for thread in by_use(threads)
        if (fault := fences.fault(thread.layer, frozenset(thread.affinity)))
    ]
    if faults:
        worst, fault = faults[0]
        culprits = [thread for thread, _ in faults]
        yield Finding(
            subject,
            f"bound to CPUs {listed(worst.affinity)}, it {fault}: {busiest(culprits)}",
            UNBIND_FIX,
            {
                "affinity": listed(worst.affinity),
                "layer": worst.layer,
                "threads": len(culprits),
                "cpu_used": cpu_used(culprits),
                **inferred(*culprits),
            },
            owner_of(worst),
        )


def _fences(placement: Placement) -> _Fences:
    samples: tuple[LayerSample, ...] = placement.snapshot.layers
    protected = placement.facts.protected
    return _Fences(
        {sample.name: placement.grounds(sample) for sample in samples},
        {
            sample.name: placement.fence(sample)
            for sample in samples
            if sample.name in protected and placement.fence(sample)
        },
    )
