"""How long the threads of a container waited in the run queue, as a report has it."""

from collections.abc import Iterator, Mapping
from typing import Any

from temper_plugin_rightsizer.advice.pressure import WORTH
from temper_plugin_rightsizer.demand.waits import GroupTime, Waits

MOST_SHOWN = 3
"""Name families in a report: those that waited most."""


def run_queue(waits: Waits) -> Mapping[str, Any] | None:
    """Return the waits as means over the measured time. None if none was measured.

    ``ranked`` has the share of the time in which the busiest thread waited for a CPU, the second
    busiest, and so on. ``groups`` has the CPUs that the threads of a name family used, and how many
    of them waited, on average.
    """
    if not waits.seconds:
        return None
    return {
        "ranked": [round(min(waited_s / waits.seconds, 1.0), 4) for waited_s in waits.ranked],
        "groups": [
            {
                "name": name,
                "cpus": round(time.cpu_s / waits.seconds, 4),
                "waiting": round(time.waited_s / waits.seconds, 4),
            }
            for name, time in _most_waiting(waits)
        ],
    }


def run_queue_reasons(waits: Waits, hot_cores: int, *, throttled: bool) -> Iterator[str]:
    """Yield what is worth a sentence: the waits of hot threads, and of the group that waited most.

    A *throttled* thread stays in the run queue, so the kernel counts that as a wait.
    """
    known = run_queue(waits)
    if known is None:
        return
    caution = ", throttling included" if throttled else ""
    hot = known["ranked"][:hot_cores]
    if hot and max(hot) >= WORTH:
        shares = ", ".join(f"{share:.1%}" for share in hot)
        threads = "hot thread" if hot_cores == 1 else f"{hot_cores} hot threads"
        yield f"the {threads} waited in the run queue in {shares} of the time{caution}"
    for group in known["groups"][:1]:
        if group["waiting"] >= WORTH:
            yield (
                f"threads {group['name']} used {group['cpus']:.2f} CPUs, and "
                f"{group['waiting']:.2f} of them waited in the run queue on average{caution}"
            )


def _most_waiting(waits: Waits) -> list[tuple[str, GroupTime]]:
    return sorted(waits.groups.items(), key=lambda each: -each[1].waited_s)[:MOST_SHOWN]
