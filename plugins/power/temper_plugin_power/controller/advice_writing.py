"""Writes into the WorkloadProfiles which workloads had better be started elsewhere."""

import time
from collections.abc import Callable, Iterable, Mapping

import structlog
from attrs import field, frozen

from temper_core import MachineError
from temper_kube.api_server import ApiServer
from temper_kube.bounded_warnings import BoundedWarnings
from temper_kube.failures import NotFoundError, RefusalError
from temper_kube.list_pages import Json
from temper_plugin_power.controller.in_time import in_time
from temper_plugin_power.controller.node_plans import NodePlan, advised_workloads
from temper_plugin_power.controller.stored_profiles import StoredProfile
from temper_plugin_power.workloads.owners import Workload

RECOMMENDED, REASON = "rescheduleRecommended", "rescheduleReason"
MOST_WRITES = 200
"""In one cycle. The next one writes the others."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def reasons_of(plans: Iterable[NodePlan]) -> Mapping[Workload, str]:
    """Return why each workload had better be started elsewhere, by the first of its nodes."""
    found: dict[Workload, str] = {}
    for plan in sorted(plans, key=lambda each: each.node.name):
        for workload, reason in advised_workloads(plan).items():
            found.setdefault(workload, f"{plan.node.name}: {reason}")
    return found


@frozen
class AdviceWriter:
    """Writes what differs. *wrote* gets each profile as the server has it then."""

    server: ApiServer
    wrote: Callable[[Json], object]
    clock: Callable[[], float] = time.monotonic
    _warnings: BoundedWarnings = field(factory=BoundedWarnings, init=False)

    def write(self, plans: Iterable[NodePlan], stored: Iterable[StoredProfile]) -> None:
        """Bring the advice in the profiles to that of *plans*. Profiles made by hand are left.

        A profile that cannot be written stops no other.
        """
        reasons = reasons_of(plans)
        news = [
            (profile, change)
            for profile in stored
            if profile.status and not profile.is_manual
            if (change := _change(profile, reasons.get(profile.workload)))
        ]
        for profile, change in in_time(news[:MOST_WRITES], self.clock):
            try:
                # These two fields have no other writer, so no version is needed.
                self.wrote(self.server.patch(f"{profile.path}/status", {"status": change}))
            except NotFoundError:
                continue
            except RefusalError as error:
                # Its author may have made it so large that the server refuses every change.
                if self._warnings.allows(profile.namespace):
                    _warn(profile, error)
            except MachineError as error:
                _warn(profile, error)
                return


def _warn(profile: StoredProfile, error: MachineError) -> None:
    log.warning("advice_not_written", profile=profile.path, reason=str(error)[:300])


def _change(profile: StoredProfile, reason: str | None) -> Mapping[str, object]:
    """Return the fields to patch. Both are left out of a profile without advice."""
    wanted: Mapping[str, object] = (
        {RECOMMENDED: None, REASON: None} if reason is None else {RECOMMENDED: True, REASON: reason}
    )
    return {key: value for key, value in wanted.items() if profile.status.get(key) != value}
