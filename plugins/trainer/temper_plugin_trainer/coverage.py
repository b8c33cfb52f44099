"""Judging a thread table against a profile: which group gets whom, and how much that covers."""

from collections.abc import Iterable, Sequence

from attrs import frozen

from temper_core import ThreadGroup, ThreadIdentity, WorkloadProfile, matches, satisfies
from temper_plugin_trainer.thread_tables import TableThread, ThreadTable

HOT_SHARE = 0.01
"""Of the recording's CPU time: what a thread of no group must use to be worth a group."""


@frozen
class Judged:
    """One row of the table and the group that takes it; None where no group does.

    ``others`` are groups that take it under another of its names.
    """

    thread: TableThread
    group: ThreadGroup | None
    others: tuple[str, ...] = ()

    @property
    def is_covered(self) -> bool:
        """Whether a group with a ``match`` takes it: the rest group takes whatever is left."""
        return self.group is not None and bool(self.group.match)


@frozen
class Coverage:
    """What one profile makes of one table. Shares are of the CPU time of all its threads."""

    profile: WorkloadProfile
    table: ThreadTable
    judged: tuple[Judged, ...]
    is_static: bool = False

    @property
    def covered_share(self) -> float:
        """The share of those that a group with a ``match`` takes."""
        return self._share(each for each in self.judged if each.is_covered)

    @property
    def taken_share(self) -> float:
        """The share of those that any group takes, the rest group included."""
        return self._share(each for each in self.judged if each.group is not None)

    @property
    def hot_unmatched(self) -> tuple[Judged, ...]:
        """The threads of no group with a ``match`` that are worth one, the busiest first."""
        least = HOT_SHARE * self.table.cpus_used
        found = [
            each
            for each in self.judged
            if not each.is_covered and each.thread.cpus_used > 0 and each.thread.cpus_used >= least
        ]
        return tuple(sorted(found, key=lambda each: -each.thread.cpus_used))

    @property
    def is_about_version(self) -> bool | None:
        """Whether the profile is for the recorded version; None where either does not say."""
        return satisfies(self.table.version, self.profile.fingerprint.versions)

    def of_group(self, name: str | None) -> tuple[Judged, ...]:
        """Return the rows that the group of that *name* takes; None for those of no group."""
        return tuple(
            each for each in self.judged if (each.group.name if each.group else None) == name
        )

    def share_of(self, name: str | None) -> float:
        """Return the share of the threads in the group of that *name*; None for no group."""
        return self._share(self.of_group(name))

    def _share(self, judged: Iterable[Judged]) -> float:
        total = self.table.cpus_used
        return sum(each.thread.cpus_used for each in judged) / total if total else 0.0


def judge(profile: WorkloadProfile, table: ThreadTable, *, is_static: bool = False) -> Coverage:
    """Judge every row as the agent judges live threads. *is_static* as it does without steering."""
    judged = tuple(
        _judged(profile.thread_groups, row, is_static=is_static) for row in table.threads
    )
    return Coverage(profile, table, judged, is_static)


def _judged(groups: Sequence[ThreadGroup], row: TableThread, *, is_static: bool) -> Judged:
    group = _group_of(groups, row.identity(), is_static=is_static)
    elsewhere = (_group_of(groups, row.identity(name), is_static=is_static) for name in row.names)
    others = {found.name if found else "" for found in elsewhere} - {group.name if group else ""}
    return Judged(row, group, tuple(sorted(others)))


def _group_of(
    groups: Sequence[ThreadGroup], thread: ThreadIdentity, *, is_static: bool
) -> ThreadGroup | None:
    """Return the first group that takes *thread*.

    Without steering only names count, and the rest group takes nothing once a group before it
    needs more than names: those threads stay in the layer of the pod's tier.
    """
    is_blind = False
    for group in groups:
        known = [match for match in group.match if match.is_static or not is_static]
        if any(matches(match, thread) for match in known):
            return group
        is_blind = is_blind or len(known) < len(group.match)
        if not group.match and not is_blind:
            return group
    return None
