"""WorkloadProfile objects of the cluster, as the operator keeps them."""

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_kube.list_pages import Json, version_of
from temper_plugin_power.classifier.classifying import NO_METRICS
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.controller.managed import MANAGED_BY, MANAGER
from temper_plugin_power.resources.definitions import GROUP, VERSION
from temper_plugin_power.resources.fields import text_at, value_at
from temper_plugin_power.resources.reading import CUT, profile_at, workload_at
from temper_plugin_power.workloads.owners import Workload

PROFILES = f"/apis/{GROUP}/{VERSION}/workloadprofiles"
MANUAL = f"{GROUP}/manual"
LARGEST_STATUS = 16 * 1024
"""Characters. A larger status is not one that the classifier has written."""


@frozen
class StoredProfile:
    """A WorkloadProfile as the API server has it."""

    namespace: str
    name: str
    workload: Workload
    uid: str
    version: str
    is_manual: bool
    is_ours: bool
    node: str
    status: Mapping[str, Any]
    profile: PowerProfile
    """The contents of the status."""

    @property
    def path(self) -> str:
        """The path of the object."""
        return f"{profiles_in(self.namespace)}/{self.name}"

    @property
    def is_measured(self) -> bool:
        """Whether metrics decided it, and not the hints alone."""
        return bool(self.status) and NO_METRICS not in self.profile.reason


def profiles_in(namespace: str) -> str:
    """Return the path of the profiles in a *namespace*."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/workloadprofiles"


def stored_profile(item: Json) -> StoredProfile:
    """Return the record of a WorkloadProfile."""
    annotations = value_at(item, "metadata.annotations") or {}
    labels = value_at(item, "metadata.labels") or {}
    status = value_at(item, "status")
    is_usual = isinstance(status, Mapping) and len(json.dumps(status)) <= LARGEST_STATUS
    return StoredProfile(
        namespace=text_at(item, "metadata.namespace"),
        name=text_at(item, "metadata.name"),
        workload=workload_at(item),
        uid=text_at(item, "metadata.uid"),
        version=version_of(item),
        is_manual=annotations.get(MANUAL) == "true",
        is_ours=labels.get(MANAGED_BY) == MANAGER,
        node=text_at(item, "spec.nodeName")[:CUT],
        status=status if is_usual else {},
        profile=profile_at(item if is_usual else {}),
    )
