"""``temper overcommit authority``: the webhook's two objects, for clusters without the chart."""

import base64
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

from temper_core import InputError
from temper_plugin_density.overcommit import certificates as x509
from temper_plugin_density.overcommit import names
from temper_plugin_density.overcommit.material import AUTHORITY, AUTHORITY_KEY


@frozen
class WebhookNames:
    """The webhook's namespace and Service, and the names of its two objects."""

    namespace: str
    service: str
    secret: str
    configuration: str


def manifests(of: WebhookNames, life: timedelta, now: datetime, replaced: Path | None) -> str:
    """Make an authority, and return the two objects with it as YAML.

    The configuration trusts the authorities in the PEM file *replaced* as well. Raises InputError
    if that file cannot be read.
    """
    key = x509.make_key()
    authority = x509.make_authority(key, x509.ValidityPeriod(now, now + life))
    earlier = () if replaced is None else _read(replaced)
    secret = _secret(of, x509.written([authority]), x509.written_key(key))
    configuration = _configuration(of, x509.written([authority, *earlier]))
    return yaml.safe_dump_all([secret, configuration], sort_keys=False)


def _read(path: Path) -> tuple[x509.Certificate, ...]:
    try:
        return x509.read(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _secret(of: WebhookNames, certificate: bytes, key: bytes) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": of.secret, "namespace": of.namespace},
        "type": "Opaque",
        "data": {AUTHORITY: _encoded(certificate), AUTHORITY_KEY: _encoded(key)},
    }


def _configuration(of: WebhookNames, bundle: bytes) -> Mapping[str, Any]:
    service = {"namespace": of.namespace, "name": of.service, "path": "/mutate", "port": 443}
    webhook = {
        "name": "overcommit.temper.codes",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"caBundle": _encoded(bundle), "service": service},
        "rules": [_new_pods()],
        "namespaceSelector": {
            "matchExpressions": [
                {"key": names.CHOICE, "operator": "In", "values": [names.ENABLED]},
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": [names.SYSTEM_NAMESPACE, of.namespace],
                },
            ]
        },
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "Never",
        "sideEffects": "None",
        "timeoutSeconds": 2,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": of.configuration},
        "webhooks": [webhook],
    }


def _new_pods() -> Mapping[str, Any]:
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
        "scope": "Namespaced",
    }


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
