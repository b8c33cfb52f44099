"""The two objects that the webhook keeps in the cluster: its Secret, and its configuration."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import field, frozen
from lightkube import Client
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.admissionregistration_v1 import MutatingWebhookConfiguration
from lightkube.resources.core_v1 import Secret

from temper_plugin_density.cluster_access import NotFoundError, told


@frozen
class Held:
    """What the Secret holds, in which version."""

    data: Mapping[str, bytes]
    version: str
    found: Secret | None = field(default=None, eq=False, repr=False)
    """The object itself: what others wrote into it stays there."""


@frozen
class Configured:
    """The bundles of the configuration's webhooks by name, in which version."""

    bundles: Mapping[str, bytes]
    version: str


class Objects(Protocol):
    """Access to the Secret and the configuration; every call may raise MachineError.

    ``create_secret``, ``update_secret`` and ``set_bundles`` raise ConflictError where the object
    is not what was seen.
    """

    def secret(self) -> Held | None:
        """Return the Secret, None where there is none."""

    def create_secret(self, data: Mapping[str, bytes]) -> None:
        """Make the Secret."""

    def update_secret(self, seen: Held, data: Mapping[str, bytes]) -> None:
        """Replace the data of the Secret that was *seen*."""

    def configuration(self) -> Configured | None:
        """Return the configuration, None where there is none."""

    def set_bundles(self, seen: Configured, bundles: Mapping[str, bytes]) -> None:
        """Replace bundles of the configuration that was *seen*."""


@frozen
class ClusterObjects:
    """The objects by those names, at the API server."""

    connect: Callable[[], Client]
    namespace: str
    secret_name: str
    configuration_name: str

    def secret(self) -> Held | None:
        """Return the Secret, None where there is none."""
        try:
            with told(f"secret {self.secret_name}"), self.connect() as client:
                found = client.get(Secret, self.secret_name, namespace=self.namespace)
        except NotFoundError:
            return None
        data = {key: _decoded(text) for key, text in (found.data or {}).items()}
        return Held(data, _version(found.metadata), found)

    def create_secret(self, data: Mapping[str, bytes]) -> None:
        """Make the Secret."""
        with told(f"secret {self.secret_name}"), self.connect() as client:
            client.create(self._secret(data))

    def update_secret(self, seen: Held, data: Mapping[str, bytes]) -> None:
        """Replace the data of the Secret that was *seen*."""
        with told(f"secret {self.secret_name}"), self.connect() as client:
            secret = seen.found or self._secret({})
            secret.data = {key: _encoded(value) for key, value in {**seen.data, **data}.items()}
            client.replace(secret)

    def configuration(self) -> Configured | None:
        """Return the configuration, None where there is none."""
        name = self.configuration_name
        try:
            with told(f"webhook configuration {name}"), self.connect() as client:
                found = client.get(MutatingWebhookConfiguration, name)
        except NotFoundError:
            return None
        bundles = {
            each.name: _decoded(each.clientConfig.caBundle or "") for each in found.webhooks or ()
        }
        return Configured(bundles, _version(found.metadata))

    def set_bundles(self, seen: Configured, bundles: Mapping[str, bytes]) -> None:
        """Replace bundles of the configuration that was *seen*; its other fields stay."""
        name = self.configuration_name
        webhooks = [
            {"name": each, "clientConfig": {"caBundle": _encoded(bundle)}}
            for each, bundle in bundles.items()
        ]
        change = {"metadata": {"resourceVersion": seen.version}, "webhooks": webhooks}
        with told(f"webhook configuration {name}"), self.connect() as client:
            client.patch(MutatingWebhookConfiguration, name, change)

    def _secret(self, data: Mapping[str, bytes]) -> Secret:
        metadata = ObjectMeta(name=self.secret_name, namespace=self.namespace)
        encoded = {key: _encoded(value) for key, value in data.items()}
        return Secret(metadata=metadata, type="kubernetes.io/tls", data=encoded)


def _version(metadata: ObjectMeta | None) -> str:
    return (metadata.resourceVersion if metadata else None) or ""


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""
