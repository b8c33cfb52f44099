"""The two objects that the webhook maintains in the cluster: its Secret and its configuration."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from attrs import field, frozen

from temper_kube.api_server import STRATEGIC_MERGE_PATCH, ApiServer
from temper_kube.list_pages import Json, version_of
from temper_plugin_density.cluster_access import about

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@frozen
class StoredSecret:
    """The data of the Secret, and its version."""

    data: Mapping[str, bytes]
    version: str
    found: Json | None = field(default=None, eq=False, repr=False)
    """The object itself, so that an update keeps the fields of other writers."""


@frozen
class Configured:
    """The CA bundles of the configuration's webhooks by name, and its version."""

    bundles: Mapping[str, bytes]
    version: str


class Objects(Protocol):
    """Access to the Secret and the configuration. Every call may raise MachineError.

    ``create_secret``, ``update_secret`` and ``set_bundles`` raise ConflictError if the object
    has changed since it was read.
    """

    def secret(self) -> StoredSecret | None:
        """Return the Secret, None where there is none."""

    def create_secret(self, data: Mapping[str, bytes]) -> None:
        """Make the Secret."""

    def update_secret(self, seen: StoredSecret, data: Mapping[str, bytes]) -> None:
        """Replace the data of the Secret that was *seen*."""

    def configuration(self) -> Configured | None:
        """Return the configuration, None where there is none."""

    def set_bundles(self, seen: Configured, bundles: Mapping[str, bytes]) -> None:
        """Replace bundles of the configuration *seen*."""


@frozen
class ClusterObjects:
    """The objects of those names at the API server."""

    connect: Callable[[], ApiServer]
    namespace: str
    secret_name: str
    configuration_name: str

    def secret(self) -> StoredSecret | None:
        """Return the Secret, None where there is none."""
        with about(f"secret {self.secret_name}"), self.connect() as server:
            secret = server.find(f"{self._secrets}/{self.secret_name}")
        if secret is None:
            return None
        data = {key: _decoded(text) for key, text in (secret.get("data") or {}).items()}
        return StoredSecret(data, version_of(secret), secret)

    def create_secret(self, data: Mapping[str, bytes]) -> None:
        """Make the Secret."""
        with about(f"secret {self.secret_name}"), self.connect() as server:
            server.post(self._secrets, self._secret(data))

    def update_secret(self, seen: StoredSecret, data: Mapping[str, bytes]) -> None:
        """Replace the data of the Secret that was *seen*."""
        encoded = {key: _encoded(value) for key, value in {**seen.data, **data}.items()}
        changed = {**(seen.found or self._secret({})), "data": encoded}
        with about(f"secret {self.secret_name}"), self.connect() as server:
            server.put(f"{self._secrets}/{self.secret_name}", changed)

    def configuration(self) -> Configured | None:
        """Return the configuration, None where there is none."""
        name = self.configuration_name
        with about(f"webhook configuration {name}"), self.connect() as server:
            configuration = server.find(f"{CONFIGURATIONS}/{name}")
        if configuration is None:
            return None
        bundles = {
            webhook["name"]: _decoded(webhook["clientConfig"].get("caBundle") or "")
            for webhook in configuration.get("webhooks") or ()
        }
        return Configured(bundles, version_of(configuration))

    def set_bundles(self, seen: Configured, bundles: Mapping[str, bytes]) -> None:
        """Replace bundles of the configuration *seen*. Its other fields are kept."""
        name = self.configuration_name
        webhooks = [
            {"name": webhook, "clientConfig": {"caBundle": _encoded(bundle)}}
            for webhook, bundle in bundles.items()
        ]
        change = {"metadata": {"resourceVersion": seen.version}, "webhooks": webhooks}
        with about(f"webhook configuration {name}"), self.connect() as server:
            server.patch(f"{CONFIGURATIONS}/{name}", change, STRATEGIC_MERGE_PATCH)

    @property
    def _secrets(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    def _secret(self, data: Mapping[str, bytes]) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.secret_name, "namespace": self.namespace},
            "type": "kubernetes.io/tls",
            "data": {key: _encoded(value) for key, value in data.items()},
        }


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""
