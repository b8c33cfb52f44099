"""Kubernetes Events about what the operator has done."""

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
from attrs import define, field, frozen

from temper_core import MachineError
from temper_kube.api_server import ApiServer
from temper_kube.bounded_warnings import BoundedWarnings

COMPONENT = "temper-power"
LONGEST_MESSAGE = 1000
CLUSTER_NAMESPACE = "default"
"""Events about objects without a namespace are there, as those of the kubelet about its node."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Subject:
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


@define
class Events:
    """Writes events, some in an hour for each namespace. One that cannot be written is logged."""

    server: ApiServer
    host: str
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    _bounds: BoundedWarnings = field(factory=BoundedWarnings, init=False)

    def tell(self, subject: Subject, reason: str, message: str) -> None:
        """Write an event about *subject*."""
        if not self._bounds.allows(subject.namespace or subject.name):
            return
        namespace = subject.namespace or CLUSTER_NAMESPACE
        path = f"/api/v1/namespaces/{namespace}/events"
        try:
            self.server.post(path, self._body(subject, namespace, reason, message))
        except MachineError as error:
            log.warning("event_not_written", reason=str(error)[:300])

    def _body(
        self, subject: Subject, namespace: str, reason: str, message: str
    ) -> Mapping[str, Any]:
        at = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        involved = {"apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name}
        known = {"namespace": subject.namespace, "uid": subject.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{COMPONENT}.{uuid.uuid4().hex}", "namespace": namespace},
            "involvedObject": {**involved, **{key: text for key, text in known.items() if text}},
            "reason": reason,
            "message": message[:LONGEST_MESSAGE],
            "type": "Normal",
            "source": {"component": COMPONENT, "host": self.host},
            "reportingComponent": COMPONENT,
            "reportingInstance": self.host,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
