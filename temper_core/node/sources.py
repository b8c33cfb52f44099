"""The pod sources of the core. Plugins add their own."""

from temper_core.node.file_source import FilePods
from temper_core.node.local_source import LocalPods
from temper_core.records.contributions import PodSource


def builtin_pod_sources() -> list[PodSource]:
    """Return the sources ``local`` and ``file``."""
    return [
        PodSource("local", LocalPods, "The workloads of this host, found in its cgroup tree."),
        PodSource("file", FilePods, "A Kubernetes PodList in a file, JSON or YAML."),
    ]
