"""Reads Pod objects of Kubernetes."""

from collections.abc import Callable, Mapping

from temper_core import DocumentError, read_pod_object
from temper_plugin_power.resources.fields import text_at
from temper_plugin_power.workloads.pods import MeasuredPod


def measured_pod(
    item: object, source: str, doubted: Callable[[str], object] | None = None
) -> MeasuredPod | None:
    """Return a pod without measures, None if it has ended.

    *doubted* is as that of ``read_pod_object``. Raises DocumentError if it is invalid.
    """
    if not isinstance(item, Mapping):
        raise DocumentError(source, ["must be a table"])
    pod = read_pod_object(item, source=source, doubted=doubted)
    if pod is None:
        return None
    node, created_at = (text_at(item, at) for at in ("spec.nodeName", "metadata.creationTimestamp"))
    return MeasuredPod(pod, node, created_at)
