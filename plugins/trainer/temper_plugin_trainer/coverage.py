"""Judges a thread table against a profile: the group of each thread, and the share covered."""

from collections.abc import Iterable, Sequence

from attrs import frozen

from temper_core import ThreadGroup, ThreadIdentity, WorkloadProfile, matches, satisfies
from temper_plugin_trainer.thread_tables import TableThread, ThreadTable

HOT_SHARE = 0.01
"""Share of the recording's CPU time from which a thread of no group is reported as hot."""


@frozen
class Judged:
    """One row of the table and the group that takes it, or None.

    ``others`` are the groups that take the thread under its other names.
    """

    thread: TableThread
    group: ThreadGroup | None
    others: tuple[str, ...] = ()

    @property
    def is_covered(self) -> bool:
        """Whether a group with a ``match`` takes it, not the rest group."""
        return self.group is not None and bool(self.group.match)


@frozen
class Coverage:
    """The result of one profile on one table. Shares are of the CPU time of all its threads."""

    profile: WorkloadProfile
    table: ThreadTable
    judged: tuple[Judged, ...]
    is_static: bool = False

    @property
    def covered_share(self) -> float:
        """The share of the threads in groups with a ``match``."""
        return self._share(row for row in self.judged if row.is_covered)

    @property
    def taken_share(self) -> float:
        """The share of the threads in any group, the rest group included."""
        return self._share(row for row in self.judged if row.group is not None)

    @property
    def hot_unmatched(self) -> tuple[Judged, ...]:
        """The hot threads of no group with a ``match``, the busiest first."""
        least = HOT_SHARE * self.table.cpus_used
        hot = [
            row
            for row in self.judged
            if not row.is_covered and row.thread.cpus_used > 0 and row.thread.cpus_used >= least
        ]
        return tuple(sorted(hot, key=lambda row: -row.thread.cpus_used))

    @property
    def is_about_version(self) -> bool | None:
        """Whether the profile is for the recorded version, None if either names no version."""
        return satisfies(self.table.version, self.profile.fingerprint.versions)

    def of_group(self, name: str | None) -> tuple[Judged, ...]:
        """Return the rows of the group *name*, or of no group if it is None."""
        return tuple(row for row in self.judged if (row.group.name if row.group else None) == name)

    def share_of(self, name: str | None) -> float:
        """Return the share of the threads in the group *name*, or in no group if it is None."""
        return self._share(self.of_group(name))

    def _share(self, judged: Iterable[Judged]) -> float:
        total = self.table.cpus_used
        return sum(row.thread.cpus_used for row in judged) / total if total else 0.0


def judge(profile: WorkloadProfile, table: ThreadTable, *, is_static: bool = False) -> Coverage:
    """Judge every row as the agent judges live threads, without steering if *is_static*."""
    judged = tuple(
        _judged(profile.thread_groups, row, is_static=is_static) for row in table.threads
    )
    return Coverage(profile, table, judged, is_static)


def _judged(groups: Sequence[ThreadGroup], row: TableThread, *, is_static: bool) -> Judged:
    group = _group_of(groups, row.identity(), is_static=is_static)
    elsewhere = (_group_of(groups, row.identity(name), is_static=is_static) for name in row.names)
    others = {other.name if other else "" for other in elsewhere} - {group.name if group else ""}
    return Judged(row, group, tuple(sorted(others)))


def _group_of(
    groups: Sequence[ThreadGroup], thread: ThreadIdentity, *, is_static: bool
) -> ThreadGroup | None:
    """Return the first group that takes *thread*.

    Without steering only names count. The rest group then takes nothing if a group before it needs
    more than names, and those threads stay in the layer of the pod's tier.
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
