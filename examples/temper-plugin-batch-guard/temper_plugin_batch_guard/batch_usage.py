"""The exporter, which converts a snapshot to two metrics."""

from collections.abc import Iterator

from temper_core import Metric, MetricFamily, MetricSample, PanelHint, Snapshot
from temper_plugin_batch_guard.limits import Limits

PODS = MetricFamily("temper_batch_pods", "Pods that are batch jobs.")
CPUS_USED = MetricFamily(
    "temper_batch_cpus_used",
    "CPUs that batch jobs used in the last window.",
    panels=(PanelHint("Used by batch jobs", "cpus"),),
)


def batch_usage(snapshot: Snapshot, limits: Limits) -> Iterator[Metric]:
    """Yield the number of batch jobs, and the CPUs they used in the last window."""
    jobs = [pod for pod in snapshot.pods if pod.profile == limits.profile]
    yield PODS.metric([MetricSample(len(jobs))])
    yield CPUS_USED.metric([MetricSample(sum(pod.cpu_used for pod in jobs))])
