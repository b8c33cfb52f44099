"""``protected_fallback`` and ``open_reserve``: fenced work stays inside, other work outside."""

from collections.abc import Iterator

from temper_core import Finding, LayerKind, LayerSample, ThreadSample
from temper_plugin_linter.names import busiest, inferred, listed
from temper_plugin_linter.placement import Placement, cpu_used

FALLBACK_FIX = (
    "look for affinities of the named threads that contradict the fence (taskset, cpusets, "
    "numactl); if all CPUs of the layer are busy, raise the requests of its pods"
)
OPEN_FIX = (
    "look for threads bound to these CPUs (taskset, cpusets), and for a protected layer without "
    "work of its own"
)
RESERVE_FIX = (
    "raise [plan] reserve_cores, or lower the requests and limits of critical and high pods on "
    "this node"
)


def protected_fallback(placement: Placement) -> Iterator[Finding]:
    """Find Confined layers whose work runs outside their fence.

    The measures are the engine's own counts: CPU time outside, and fallback events. An engine that
    does not count the first is replaced by the CPUs on which threads were last seen, weighted with
    the CPU time used. Then CPUs that the layer owned at the window's begin count as inside.
    """
    if not placement.is_judged:
        return
    limits = placement.limits
    for sample in placement.samples(LayerKind.CONFINED):
        members, grounds = placement.threads.by_layer[sample.name], placement.grounds(sample)
        used = cpu_used(members)
        strays = [thread for thread in members if thread.cpu not in grounds]
        stray_ratio = _stray_ratio(sample, strays, used) if used > limits.idle_cpu else 0.0
        if max(stray_ratio, sample.fallback_ratio) >= limits.stray_ratio:
            yield Finding(
                f"layer {sample.name}",
                _fallback_message(sample, strays, stray_ratio),
                _fallback_fix(placement, sample),
                {
                    "stray_ratio": stray_ratio,
                    "fallback_ratio": sample.fallback_ratio,
                    "cpu_used": used,
                    "limit": limits.stray_ratio,
                    **inferred(*strays),
                },
            )


def open_reserve(placement: Placement) -> Iterator[Finding]:
    """Find Open work on protected CPUs, and a node with too few cores for it."""
    if not placement.is_judged:
        return
    limits = placement.limits
    for sample in placement.samples(LayerKind.OPEN):
        members = placement.threads.by_layer[sample.name]
        used = cpu_used(members)
        intruders = [thread for thread in members if thread.cpu in placement.protected_cpus]
        ratio = cpu_used(intruders) / used if used > limits.idle_cpu else 0.0
        if ratio >= limits.stray_ratio:
            yield Finding(
                f"layer {sample.name}",
                f"{ratio:.0%} of its CPU use is on CPUs of protected layers: {busiest(intruders)}",
                OPEN_FIX,
                {
                    "intruding_ratio": ratio,
                    "cpu_used": used,
                    "limit": limits.stray_ratio,
                    **inferred(*intruders),
                },
            )
    yield from _missing_cores(placement)


def _missing_cores(placement: Placement) -> Iterator[Finding]:
    snapshot = placement.snapshot
    # A layer without a tier is the system layer, which may use the reserve.
    owned = {cpu for sample in snapshot.layers if sample.tier is not None for cpu in sample.cpus}
    free_cores = sum(owned.isdisjoint(siblings) for siblings in snapshot.machine.siblings)
    if free_cores < snapshot.reserve_cores:
        yield Finding(
            "node",
            f"{free_cores} of {snapshot.machine.cores} cores are left to Open and system layers, "
            f"fewer than the reserve of {snapshot.reserve_cores}",
            RESERVE_FIX,
            {
                "cores_left": free_cores,
                "reserve_cores": snapshot.reserve_cores,
                "cores": snapshot.machine.cores,
            },
        )


def _stray_ratio(sample: LayerSample, strays: list[ThreadSample], used: float) -> float:
    """Return the share of the layer's CPU time outside its CPUs.

    A thread is seen on one CPU at the end of a window, and may have run elsewhere before. So the
    engine's count outweighs what was seen.
    """
    return cpu_used(strays) / used if sample.outside_ratio is None else sample.outside_ratio


def _fallback_fix(placement: Placement, sample: LayerSample) -> str:
    """Return the remedy, with the threads of other layers that were seen on the layer's CPUs."""
    guests = [
        thread
        for cpu in placement.fence(sample)
        for thread in placement.by_cpu.get(cpu, ())
        if thread.layer != sample.name and thread.cpu_used > 0
    ]
    if not guests:
        return FALLBACK_FIX
    return f"threads of other layers were seen on its CPUs: {busiest(guests)}; {FALLBACK_FIX}"


def _fallback_message(sample: LayerSample, strays: list[ThreadSample], ratio: float) -> str:
    parts = []
    if ratio > 0:
        seen = f": {busiest(strays)}" if strays else ""
        parts.append(f"{ratio:.0%} of its CPU use is outside CPUs {listed(sample.cpus)}{seen}")
    if sample.fallback_ratio > 0:
        parts.append(f"the engine counts {sample.fallback_ratio:.0%} of its events as fallback")
    return "; ".join(parts)
