"""The metric families of the rightsizer, and their dashboard panels."""

from collections.abc import Mapping

from temper_core import Metric, MetricFamily, MetricSample, PanelHint
from temper_plugin_rightsizer.demand.window import ContainerKey, WindowDemand

MOST_SERIES = 128
"""Containers with a series of their own: the busiest by their busiest thread."""

HOTTEST = MetricFamily(
    "temper_container_hottest_thread_cpus",
    "CPUs that the busiest thread of a container used in the last window, of the busiest "
    "containers.",
    labels=("namespace", "pod", "container"),
    panels=(PanelHint("Use of the busiest thread", "cpus", board="pod", legend="{{container}}"),),
)
FAMILIES = (HOTTEST,)


def hottest_threads(demands: Mapping[ContainerKey, WindowDemand]) -> Metric:
    """Return the use of each container's busiest thread in a window."""
    hottest = ((max(demand.ranked, default=0.0), key) for key, demand in demands.items())
    busiest = sorted(hottest, key=lambda use: -use[0])[:MOST_SERIES]
    samples = [
        MetricSample(used, {"namespace": key.namespace, "pod": key.pod, "container": key.container})
        for used, key in busiest
        if used
    ]
    return Metric(HOTTEST.name, HOTTEST.help, samples)
