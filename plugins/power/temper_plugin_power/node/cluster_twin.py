"""The NodeTwin of this node in the cluster: read, and its controlStatus written."""

import os
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Self

from temper_core import MachineError
from temper_kube.access import Access, in_cluster
from temper_kube.api_server import ApiServer
from temper_kube.failures import NotFoundError
from temper_kube.kubeconfig import read_kubeconfig
from temper_plugin_power.node.control_status import UPDATED_AT, ControlStatus
from temper_plugin_power.resources.definitions import GROUP, VERSION
from temper_plugin_power.resources.fields import value_at
from temper_plugin_power.settings.durations import seconds
from temper_plugin_power.settings.node import NodeSettings

TWINS = f"/apis/{GROUP}/{VERSION}/nodetwins"
CLOSE_S = 1.0
NOT_ASKED_YET = "the NodeTwin was not read yet"
NO_SERVER = (
    "no API server is known: KUBERNETES_SERVICE_HOST is not set, as it is in every pod, and "
    "[plugins.power.node] kubeconfig names no file"
)

Json = Mapping[str, Any]


class ClusterTwin:
    """Asks the API server once in an interval, on a thread of its own.

    It has the rights to get NodeTwins and to patch their status, and uses no others.
    """

    def __init__(
        self,
        server: ApiServer,
        node: str,
        interval_s: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._server = server
        self._path = f"{TWINS}/{node}"
        self._name = f"NodeTwin {node}"
        self._interval_s = interval_s
        self._now = now
        self._found: tuple[Json | None, str] = None, NOT_ASKED_YET
        self._status: ControlStatus | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="power-twin", daemon=True)
        self.problem = ""
        """Why the last turn failed, empty if it did not."""

    @classmethod
    def of(cls, settings: NodeSettings, node: str) -> Self:
        """Begin to ask the server that the settings name. Raises MachineError without any."""
        server = ApiServer(_access(settings))
        made = cls(server, node, seconds(settings.interval))
        made._thread.start()
        return made

    def found(self) -> tuple[Json | None, str]:
        """Return the NodeTwin that was last read, or None and why there is none.

        While the server is away it is the last one, which ends by its own age.
        """
        return self._found

    def report(self, status: ControlStatus) -> None:
        """Let the next turn write what was done."""
        self._status = status

    def turn(self) -> None:
        """Read the NodeTwin, and write its controlStatus if that is another one."""
        try:
            # Version 0 is answered from the cache of the API server.
            twin = self._server.get(f"{self._path}?resourceVersion=0")
            self._found = twin, ""
            self._write(twin)
            self.problem = ""
        except NotFoundError:
            self._found = None, f"the cluster has no {self._name}"
            self.problem = self._found[1]
        except MachineError as error:
            self.problem = str(error)[:300]
            if self._found[0] is None:
                self._found = None, self.problem

    def close(self) -> None:
        """Write the last status, and end the thread."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        with self._server:
            while not self._closing.is_set():
                self.turn()
                self._closing.wait(self._interval_s)
            self.turn()

    def _write(self, twin: Json) -> None:
        status = self._status
        if status is None or status.equals(value_at(twin, "status.controlStatus")):
            return
        at = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        told = {part: {**fields, UPDATED_AT: at} for part, fields in status.parts.items()}
        self._server.patch(f"{self._path}/status", {"status": {"controlStatus": told}})


def _access(settings: NodeSettings) -> Access:
    """Return the address and the credentials. No credential program of a kubeconfig is run."""
    if settings.kubeconfig:
        return read_kubeconfig(settings.kubeconfig)
    access = in_cluster(os.environ)
    if access is None:
        raise MachineError(NO_SERVER)
    return access
