"""A condition that the linter checks on the node."""

from collections.abc import Callable, Iterable

from attrs import field, frozen

from temper_core.records.lint import Finding, Severity
from temper_core.records.names import SNAKE_NAME
from temper_core.records.snapshots import Snapshot


@frozen
class Invariant:
    """A condition that every snapshot is checked against. ``check`` does no I/O."""

    name: str = field(validator=SNAKE_NAME)
    check: Callable[[Snapshot], Iterable[Finding]]
    why: str
    severity: Severity = Severity.WARNING
