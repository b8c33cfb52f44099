"""The pod sources that the core brings along. Plugins add theirs."""

from temper_core.node.file_source import FilePods
from temper_core.node.local_source import LocalPods
from temper_core.records.contributions import PodSource


def builtin_pod_sources() -> list[PodSource]:
    """Return the sources ``local`` and ``file``."""
    return [
        PodSource("local", LocalPods, "What runs on this host, told from its cgroup tree."),
        PodSource("file", FilePods, "A Kubernetes PodList in a file, JSON or YAML."),
    ]
