"""The threads of a workload as Temper's agents report them. No rule depends on it."""

from collections.abc import Mapping, Sequence

from temper_plugin_power.workloads.pods import MeasuredPod
from temper_plugin_power.workloads.sums import percent, total


def thread_evidence(pods: Sequence[MeasuredPod]) -> Mapping[str, float | None]:
    """Return the fields of the evidence. None is not known."""
    used = total(pods, lambda measures: measures.cpu_rate)
    waited = total(pods, lambda measures: measures.run_wait)
    busiest = total(pods, lambda measures: measures.busiest_thread)
    has_waited = waited is not None and used is not None
    return {
        "runQueueWaitPct": percent(waited or 0.0, (waited or 0.0) + (used or 0.0))
        if has_waited
        else None,
        "threads": total(pods, lambda measures: measures.threads),
        "busiestThreadPct": percent(busiest or 0.0, used or 0.0) if busiest is not None else None,
    }
