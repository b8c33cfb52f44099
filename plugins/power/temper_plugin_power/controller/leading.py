"""Leader election: of several replicas one holds a Lease, and only that one writes."""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
from attrs import frozen

from temper_core import MachineError
from temper_kube.api_server import ApiServer
from temper_kube.failures import ConflictError
from temper_kube.list_pages import Json, version_of
from temper_plugin_power.resources.fields import number_at, text_at

DURATION_S = 15
RENEW_S = 3.0
MARGIN_S = 5.0
"""The holder stops this long before others may take the Lease."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NotLeadingError(MachineError):
    """A request that was not sent, because another replica may write."""


@frozen
class LeaseName:
    """The Lease, and the name by which this replica holds it."""

    namespace: str
    name: str
    holder: str

    @property
    def collection(self) -> str:
        """The path of the Leases of the namespace."""
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"


class Leader:
    """Holds the Lease, or waits for it. Other clocks are not trusted.

    A Lease of another replica has expired if it has not changed for its duration, by this clock.
    """

    def __init__(
        self,
        server: ApiServer,
        lease: LeaseName,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._lease = lease
        self._clock = clock
        self._held_until = float("-inf")
        self._seen = ""
        self._seen_at = float("-inf")
        self._was_leading = False
        self._warned = ""

    @property
    def is_leading(self) -> bool:
        """Whether this replica may write now."""
        return self._clock() < self._held_until

    def permit(self) -> float:
        """Return how many seconds a write may take, so that it ends before others may begin.

        Raises NotLeadingError.
        """
        left_s = self._held_until - self._clock()
        if left_s <= 0:
            raise NotLeadingError("not written: this replica does not lead")
        return left_s + MARGIN_S

    def run(self, closing: threading.Event) -> None:
        """Renew or wait until *closing* is set."""
        while not closing.is_set():
            self.turn()
            closing.wait(RENEW_S)

    def turn(self) -> None:
        """Take, renew or look at the Lease once. A failure leaves what is held until it expires."""
        began = self._clock()
        try:
            is_ours = self._take()
            self._warned = ""
            if is_ours:
                self._held_until = began + DURATION_S - MARGIN_S
            else:
                self._held_until = float("-inf")
        except ConflictError:
            self._held_until = float("-inf")
        except MachineError as error:
            self._warn(str(error)[:300])
        if self.is_leading != self._was_leading:
            self._was_leading = self.is_leading
            log.info("leading_began" if self._was_leading else "leading_ended")

    def _warn(self, reason: str) -> None:
        """Log a failure, once for each reason."""
        if reason != self._warned:
            self._warned = reason
            log.warning("lease_not_renewed", reason=reason)

    def release(self) -> None:
        """Give the Lease back, so that another replica need not wait."""
        if not self.is_leading:
            return
        self._held_until = float("-inf")
        try:
            found = self._server.find(f"{self._lease.collection}/{self._lease.name}")
            if found is not None and self._holder_of(found) == self._lease.holder:
                self._write(found, holder="")
        except MachineError as error:
            log.warning("lease_not_released", reason=str(error)[:300])

    def _take(self) -> bool:
        found = self._server.find(f"{self._lease.collection}/{self._lease.name}")
        if found is None:
            self._server.post(self._lease.collection, self._body({}, self._lease.holder))
            return True
        holder = self._holder_of(found)
        if holder not in ("", self._lease.holder) and not self._has_expired(found):
            return False
        self._write(found, holder=self._lease.holder)
        return True

    def _has_expired(self, found: Json) -> bool:
        now = self._clock()
        if version_of(found) != self._seen:
            self._seen, self._seen_at = version_of(found), now
        lasts_s = number_at(found, "spec.leaseDurationSeconds") or DURATION_S
        return now - self._seen_at > lasts_s

    def _write(self, found: Json, holder: str) -> None:
        path = f"{self._lease.collection}/{self._lease.name}"
        self._server.put(path, self._body(found, holder))

    def _body(self, found: Json, holder: str) -> Mapping[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        own = {"name": self._lease.name, "namespace": self._lease.namespace}
        kept = found.get("metadata")
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**(kept if isinstance(kept, Mapping) else {}), **own},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": DURATION_S,
                "renewTime": now,
                "acquireTime": text_at(found, "spec.acquireTime") or now,
            },
        }

    def _holder_of(self, found: Json) -> str:
        return text_at(found, "spec.holderIdentity")
