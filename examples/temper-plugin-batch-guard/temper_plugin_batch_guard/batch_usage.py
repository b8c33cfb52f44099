"""The exporter: a snapshot in, two metrics out."""

from collections.abc import Iterator

from temper_core import Metric, MetricSample, Snapshot
from temper_plugin_batch_guard.limits import Limits


def batch_usage(snapshot: Snapshot, limits: Limits) -> Iterator[Metric]:
    """Yield how many batch jobs there are, and how many CPUs they used in the last window."""
    jobs = [pod for pod in snapshot.pods if pod.profile == limits.profile]
    yield Metric("temper_batch_pods", "Pods that are batch jobs.", [MetricSample(len(jobs))])
    yield Metric(
        "temper_batch_cpus_used",
        "CPUs that batch jobs used in the last window.",
        [MetricSample(sum(pod.cpu_used for pod in jobs))],
    )
