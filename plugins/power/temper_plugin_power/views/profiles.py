"""The WorkloadProfiles of a cluster, and a single one."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from temper_core import InputError
from temper_core.console import did_you_mean
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.resources.fields import value_at
from temper_plugin_power.resources.reading import profile_at, workload_at
from temper_plugin_power.workloads.owners import Workload


@frozen
class ProfileRow:
    """A profile with what it follows from."""

    workload: Workload
    profile: PowerProfile
    evidence: Mapping[str, Any]

    @property
    def traits(self) -> tuple[str, ...]:
        """The JSON paths of the fields that follow from the traits of a thread profile."""
        paths = self.evidence.get("traits")
        return tuple(str(each) for each in paths) if isinstance(paths, list) else ()


def profile_rows(objects: Sequence[Mapping[str, Any]]) -> list[ProfileRow]:
    """Return a row for each WorkloadProfile, by namespace, kind and name."""
    rows = []
    for each in objects:
        if each.get("kind") == "WorkloadProfile":
            evidence = value_at(each, "status.evidence")
            known = evidence if isinstance(evidence, Mapping) else {}
            rows.append(ProfileRow(workload_at(each), profile_at(each), known))
    return sorted(rows, key=lambda row: row.workload)


def find_profile(rows: Sequence[ProfileRow], named: str) -> ProfileRow:
    """Return the row of ``NAMESPACE/NAME`` or ``NAMESPACE/KIND/NAME``, the kind in any case.

    NAME is that of the workload or of the object. Raises InputError unless there is exactly one.
    """
    namespace, _, rest = named.partition("/")
    kind, _, name = rest.rpartition("/")
    if not namespace or not name:
        raise InputError(f"{named!r} must be NAMESPACE/NAME or NAMESPACE/KIND/NAME")
    found = [row for row in rows if _is_named(row.workload, namespace, kind, name)]
    if len(found) == 1:
        return found[0]
    if not found:
        meant = did_you_mean(
            named, (f"{each.workload.namespace}/{each.workload.name}" for each in rows)
        )
        raise InputError(f"{named}: has no WorkloadProfile{meant}")
    kinds = ", ".join(row.workload.kind for row in found)
    raise InputError(f"{named}: is the name of several workloads; add the kind, one of {kinds}")


def _is_named(workload: Workload, namespace: str, kind: str, name: str) -> bool:
    is_kind = not kind or kind.lower() == workload.kind.lower()
    return (
        workload.namespace == namespace
        and is_kind
        and name
        in (
            workload.name,
            workload.object_name,
        )
    )
