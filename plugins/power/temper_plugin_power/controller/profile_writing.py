"""Writes WorkloadProfiles: what has changed, and over nothing that changed meanwhile."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from temper_kube.api_server import ApiServer
from temper_kube.failures import ConflictError, NotFoundError
from temper_kube.list_pages import Json
from temper_plugin_power.controller.hysteresis import categories_of
from temper_plugin_power.controller.kube_events import Events, Subject
from temper_plugin_power.controller.managed import MANAGED_BY, MANAGER
from temper_plugin_power.controller.merge_changes import merge_change
from temper_plugin_power.controller.owners import owner_of, reference_to
from temper_plugin_power.controller.pods import KnownPod
from temper_plugin_power.controller.stored_profiles import (
    StoredProfile,
    profiles_in,
    stored_profile,
)
from temper_plugin_power.resources.definitions import GROUP, VERSION
from temper_plugin_power.workloads.profiling import KIND, WorkloadProfile

OF_OTHERS = ("rescheduleRecommended", "rescheduleReason")
"""Fields of the status that the classifier does not write."""
UPDATED = "lastUpdated"
API_VERSION = f"{GROUP}/{VERSION}"


@frozen
class ProfileWriter:
    """Writes profiles to the API server. *wrote* gets each object as the server has it then.

    Every call may raise MachineError, which leaves the object as it was or half written: a profile
    without a status, which the next call mends.
    """

    server: ApiServer
    now: Callable[[], datetime]
    wrote: Callable[[Json], object]
    events: Events | None = None

    def write(
        self, profile: WorkloadProfile, stored: StoredProfile | None, pods: Iterable[KnownPod]
    ) -> bool:
        """Bring the object to the state of *profile*. Return whether anything was written."""
        if stored is None:
            stored = self._create(profile, pods)
            if stored is None:
                return False
        try:
            return self._update(profile, stored)
        except ConflictError:
            newest = self._read(stored)
            return newest is not None and self._update(profile, newest)

    def place(self, stored: StoredProfile, node: str) -> None:
        """Write the node that all pods share, if it is another."""
        if node != stored.node and not stored.is_manual:
            self.wrote(self.server.patch(stored.path, {"spec": {"nodeName": node}}))

    def _create(self, profile: WorkloadProfile, pods: Iterable[KnownPod]) -> StoredProfile | None:
        """Make the object without a status, or find the one that is there already."""
        owner = owner_of(profile.workload, pods, self.server)
        document = dict(profile.as_object(self.now()))
        del document["status"]
        metadata = dict(document["metadata"])
        metadata["labels"] = {**metadata["labels"], MANAGED_BY: MANAGER}
        if owner is not None:
            metadata["ownerReferences"] = [reference_to(owner)]
        path = profiles_in(profile.workload.namespace)
        try:
            made = self.server.post(path, {**document, "metadata": metadata})
        except ConflictError:
            found = self.server.find(f"{path}/{metadata['name']}")
            return None if found is None else stored_profile(found)
        self.wrote(made)
        return stored_profile(made)

    def _update(self, profile: WorkloadProfile, stored: StoredProfile) -> bool:
        """Patch what differs. Raises ConflictError if the object has changed since it was read."""
        if stored.is_manual:
            return False
        version = {"metadata": {"resourceVersion": stored.version}}
        has_moved = profile.node != stored.node
        if has_moved:
            moved = self.server.patch(stored.path, {**version, "spec": {"nodeName": profile.node}})
            self.wrote(moved)
            version = {"metadata": {"resourceVersion": stored_profile(moved).version}}
        status = profile.as_object(self.now())["status"]
        change = merge_change(_timeless(stored.status), _timeless(status), OF_OTHERS)
        if not change:
            return has_moved
        patch = {**version, "status": {**change, UPDATED: status[UPDATED]}}
        self.wrote(self.server.patch(f"{stored.path}/status", patch))
        self._tell(profile, stored)
        return True

    def _tell(self, profile: WorkloadProfile, stored: StoredProfile) -> None:
        """Write an event if consumers will act in another way."""
        is_news = categories_of(profile.profile) != categories_of(stored.profile)
        if self.events is not None and stored.is_measured and is_news:
            subject = Subject(API_VERSION, KIND, stored.name, stored.namespace, stored.uid)
            self.events.tell(subject, "Reclassified", profile.profile.reason)

    def _read(self, stored: StoredProfile) -> StoredProfile | None:
        try:
            found = self.server.get(stored.path)
        except NotFoundError:
            return None
        self.wrote(found)
        return stored_profile(found)


def _timeless(status: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in status.items() if key != UPDATED}
