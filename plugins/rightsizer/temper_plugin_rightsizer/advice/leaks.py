"""Whether the replicas of a workload leak memory."""

from collections.abc import Sequence

from temper_plugin_rightsizer.demand.growth import Growth


def leak_of(growths: Sequence[Growth | None]) -> tuple[Growth | None, tuple[str, ...]]:
    """Return the leak of a workload and its description, by the growth of each replica.

    It leaks if half of the replicas grow. The fastest stands for all.
    """
    leaking = [grown for grown in growths if grown is not None]
    if not leaking:
        return None, ()
    told = f"the memory of {len(leaking)} of {len(growths)} replicas grows without end"
    fastest = max(leaking, key=lambda grown: grown.bytes_per_hour)
    leak = fastest if 2 * len(leaking) >= len(growths) else None
    return leak, (told,) if len(growths) > 1 else ()
