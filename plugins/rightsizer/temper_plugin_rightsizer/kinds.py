"""The kinds of workloads whose requests can change, and where their pods' spec is."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from attrs import frozen

from temper_core.console import Row
from temper_core.observed import table


@frozen
class Kind:
    """A kind of the API server. ``spec`` are the keys that lead to the spec of its pods."""

    version: str
    plural: str
    spec: tuple[str, ...]

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of an object, of a namespace's objects, or of all objects."""
        root = f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{within}/{self.plural}{f'/{name}' if name else ''}"

    def nested(self, pod_spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return *pod_spec* at its place in an object."""
        return reduce(lambda inner, key: {key: inner}, reversed(self.spec), pod_spec)

    def pod_spec(self, item: Row) -> Row:
        """Return the spec of the pods in the object *item*."""
        return reduce(table, self.spec, item)


_TEMPLATE = ("spec", "template", "spec")
TEMPLATES: Mapping[str, Kind] = {
    "Deployment": Kind("apps/v1", "deployments", _TEMPLATE),
    "StatefulSet": Kind("apps/v1", "statefulsets", _TEMPLATE),
    "DaemonSet": Kind("apps/v1", "daemonsets", _TEMPLATE),
    "CronJob": Kind("batch/v1", "cronjobs", ("spec", "jobTemplate", "spec", "template", "spec")),
}
"""The kinds with a template that may change."""
REPLICA_SET = Kind("apps/v1", "replicasets", _TEMPLATE)
POD = Kind("v1", "pods", ("spec",))
INIT_KINDS = ("init", "sidecar")
"""The kinds of containers that are in ``initContainers``."""
