"""The two objects that the webhook reads in the cluster: its Secret and its configuration."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import frozen

from temper_kube.api_server import ApiServer
from temper_plugin_density.cluster_access import about

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class Objects(Protocol):
    """Reads the Secret and the configuration. Every call may raise MachineError."""

    def secret(self) -> Mapping[str, bytes] | None:
        """Return the data of the Secret, None where there is none."""

    def bundles(self) -> Mapping[str, bytes] | None:
        """Return the CA bundles of the configuration's webhooks by name, None without one."""


@frozen
class ClusterObjects:
    """The objects of those names at the API server."""

    connect: Callable[[], ApiServer]
    namespace: str
    secret_name: str
    configuration_name: str

    def secret(self) -> Mapping[str, bytes] | None:
        """Return the data of the Secret, None where there is none."""
        path = f"/api/v1/namespaces/{self.namespace}/secrets/{self.secret_name}"
        with about(f"secret {self.secret_name}"), self.connect() as server:
            secret = server.find(path)
        if secret is None:
            return None
        return {key: _decoded(text) for key, text in (secret.get("data") or {}).items()}

    def bundles(self) -> Mapping[str, bytes] | None:
        """Return the CA bundles of the configuration's webhooks by name, None without one."""
        name = self.configuration_name
        with about(f"webhook configuration {name}"), self.connect() as server:
            configuration = server.find(f"{CONFIGURATIONS}/{name}")
        if configuration is None:
            return None
        return {
            webhook["name"]: _decoded(webhook["clientConfig"].get("caBundle") or "")
            for webhook in configuration.get("webhooks") or ()
        }


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""
