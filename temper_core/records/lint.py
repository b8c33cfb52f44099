"""The linter's records: findings and violations."""

from collections.abc import Mapping
from enum import StrEnum
from zlib import crc32

from attrs import field, frozen
from attrs.validators import deep_mapping, instance_of

Evidence = Mapping[str, float | int | str]


class Severity(StrEnum):
    """The urgency of a violation."""

    WARNING = "warning"
    ERROR = "error"


@frozen
class Finding:
    """One window's evidence that an invariant does not hold for *subject*.

    ``owner`` is the owner of the subject, by a name that the owner cannot change: a pod, a
    user or a service. It is empty if there is none.
    """

    subject: str = field(validator=instance_of(str))
    message: str = field(validator=instance_of(str))
    fix: str = field(validator=instance_of(str))
    evidence: Evidence = field(
        factory=dict, validator=deep_mapping(instance_of(str), instance_of((str, int, float)))
    )
    owner: str = field(default="", validator=instance_of(str))


@frozen
class Violation:
    """An invariant that was broken often enough to report. ``since`` is wall-clock seconds."""

    invariant: str
    severity: Severity
    subject: str
    message: str
    fix: str
    evidence: Evidence
    since: float
    plugin: str = ""

    @property
    def id(self) -> str:
        """The id of this invariant and subject. It does not change with a restart."""
        return violation_id(self.invariant, self.subject)


def violation_id(invariant: str, subject: str) -> str:
    """Return the id of a violation, short enough for a command line: ``rt_hog-1f0c23ab``."""
    return f"{invariant}-{crc32(subject.encode(errors='backslashreplace')):08x}"
