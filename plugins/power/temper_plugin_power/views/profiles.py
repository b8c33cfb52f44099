"""The WorkloadProfiles of a cluster, and a single one."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import evolve, frozen

from temper_core import InputError, did_you_mean
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.resources.fields import value_at
from temper_plugin_power.resources.reading import CUT, profile_at, workload_at
from temper_plugin_power.workloads.owners import Workload

LONGEST_REASON = 4096
"""Characters of the reason that are kept. The operator writes some hundred."""
MOST_ENTRIES = 64
"""How many entries of the evidence, and of a list in it, are kept. The operator writes 13."""


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


def profile_row(document: Mapping[str, Any]) -> ProfileRow:
    """Return the row of a WorkloadProfile. What a tenant may write there is kept up to a bound."""
    profile = profile_at(document)
    evidence = value_at(document, "status.evidence")
    entries = evidence.items() if isinstance(evidence, Mapping) else ()
    return ProfileRow(
        workload_at(document),
        evolve(profile, reason=profile.reason[:LONGEST_REASON]),
        {key[:CUT]: _kept(value) for key, value in islice(entries, MOST_ENTRIES)},
    )


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


def _kept(value: object) -> object:
    """Return what is kept of a value of the evidence: a number, a text, or texts."""
    if isinstance(value, list):
        return [each[:CUT] for each in value[:MOST_ENTRIES] if isinstance(each, str)]
    if isinstance(value, str):
        return value[:CUT]
    return value if isinstance(value, int | float) else None


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
