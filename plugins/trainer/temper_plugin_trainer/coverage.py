"""Judges a thread table against a profile: the group of each thread, and the share covered."""

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from temper_core import (
    Stay,
    ThreadGroup,
    ThreadIdentity,
    WorkloadProfile,
    first_taker,
    group_stays,
    matches,
    satisfies,
)
from temper_plugin_trainer.thread_tables import TableThread, ThreadTable

HOT_SHARE = 0.01
"""Share of the recording's CPU time from which a thread of no group is reported as hot."""


@frozen
class Judged:
    """One row of the table and its groups.

    ``group`` is the group that takes it at the end, once all is decided, or None. ``stays`` are the
    groups that it is really in, each with its share of the time. ``others`` are the groups that
    take the thread under its other names.
    """

    thread: TableThread
    group: ThreadGroup | None
    stays: tuple[Stay, ...]
    others: tuple[str, ...] = ()

    @property
    def is_covered(self) -> bool:
        """Whether a group with a ``match`` takes it at the end, not the rest group."""
        return _covers(self.group)

    @property
    def covered_cpus(self) -> float:
        """CPUs that it used in groups with a ``match``."""
        return self._cpus(stay for stay in self.stays if _covers(stay.group))

    @property
    def late_cpus(self) -> float:
        """CPUs that it used before user space could decide about it, in another group."""
        return self._cpus(stay for stay in self.stays if stay.is_late)

    def cpus_in(self, name: str | None) -> float:
        """Return the CPUs that it used in the group *name*, or in no group if it is None."""
        return self._cpus(stay for stay in self.stays if _name_of(stay.group) == name)

    def _cpus(self, stays: Iterable[Stay]) -> float:
        return self.thread.cpus_used * sum(stay.share for stay in stays)


@frozen
class Coverage:
    """The result of one profile on one table. Shares are of the CPU time of all its threads."""

    profile: WorkloadProfile
    table: ThreadTable
    judged: tuple[Judged, ...]
    is_static: bool = False

    @property
    def covered_share(self) -> float:
        """The share used in groups with a ``match``, of all that is known about."""
        known = self.table.cpus_used + self.unreached_cpus
        return sum(row.covered_cpus for row in self.judged) / known if known else 0.0

    @property
    def unreached_cpus(self) -> float:
        """CPUs used by threads that no look saw, if no match takes a thread from its start.

        Otherwise it is unknown whether a match takes them.
        """
        matches = (match for group in self.profile.thread_groups for match in group.match)
        return 0.0 if any(match.is_static for match in matches) else self.table.unseen_cpus

    @property
    def taken_share(self) -> float:
        """The share used in any group, the rest group included."""
        return self._share(row.thread.cpus_used - row.cpus_in(None) for row in self.judged)

    @property
    def late_share(self) -> float:
        """The share used by threads in other groups than theirs, before they could be decided."""
        return self._share(row.late_cpus for row in self.judged)

    @property
    def late(self) -> tuple[Judged, ...]:
        """The rows that use a hot thread's share before they are decided, the busiest first."""
        least = HOT_SHARE * self.table.cpus_used
        rows = [row for row in self.judged if row.late_cpus > 0 and row.late_cpus >= least]
        return tuple(sorted(rows, key=lambda row: -row.late_cpus))

    @property
    def lacks_origins(self) -> bool:
        """Whether the profile needs executables or parents and the table has none."""
        matches = [match for group in self.profile.thread_groups for match in group.match]
        asks = any(
            key is not None
            for match in matches
            for key in (match.exe, match.parent, match.is_child)
        )
        return asks and not any(row.exe or row.parent for row in self.table.threads)

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
        return tuple(row for row in self.judged if _name_of(row.group) == name)

    def share_of(self, name: str | None) -> float:
        """Return the share used in the group *name*, or in no group if it is None."""
        return self._share(row.cpus_in(name) for row in self.judged)

    def _share(self, cpus: Iterable[float]) -> float:
        total = self.table.cpus_used
        return sum(cpus) / total if total else 0.0


def judge(profile: WorkloadProfile, table: ThreadTable, *, is_static: bool = False) -> Coverage:
    """Judge every row as the agent judges live threads, without steering if *is_static*."""
    judge_row = _static_row if is_static else _steered_row
    rows = (judge_row(profile.thread_groups, row, table.seconds) for row in table.threads)
    return Coverage(profile, table, tuple(rows), is_static)


def _steered_row(groups: Sequence[ThreadGroup], row: TableThread, seconds: float) -> Judged:
    life = row.lifetime(seconds)
    group = first_taker(groups, evolve(row.identity(), age_s=life.end_s))
    elsewhere = (
        first_taker(groups, evolve(row.identity(name), age_s=life.end_s)) for name in row.names
    )
    return Judged(row, group, group_stays(groups, row.identity(), life), _others(group, elsewhere))


def _static_row(groups: Sequence[ThreadGroup], row: TableThread, _: float) -> Judged:
    group = _static_group(groups, row.identity())
    elsewhere = (_static_group(groups, row.identity(name)) for name in row.names)
    return Judged(row, group, (Stay(group, 1.0),), _others(group, elsewhere))


def _others(group: ThreadGroup | None, elsewhere: Iterable[ThreadGroup | None]) -> tuple[str, ...]:
    return tuple(sorted({_name_of(other) or "" for other in elsewhere} - {_name_of(group) or ""}))


def _static_group(groups: Sequence[ThreadGroup], thread: ThreadIdentity) -> ThreadGroup | None:
    """Return the first group that takes *thread* without steering, where only names count.

    The rest group then takes nothing if a group before it needs more than names, and those threads
    stay in the layer of the pod's tier.
    """
    is_blind = False
    for group in groups:
        known = [match for match in group.match if match.is_static]
        if any(matches(match, thread) for match in known):
            return group
        is_blind = is_blind or len(known) < len(group.match)
        if not group.match and not is_blind:
            return group
    return None


def _covers(group: ThreadGroup | None) -> bool:
    return group is not None and bool(group.match)


def _name_of(group: ThreadGroup | None) -> str | None:
    return group.name if group else None
