"""When the programs of each container are read again: after an exec, else by the container's age.

The kernel reports the exec of a program only where BPF is allowed. Elsewhere young containers are
read every ``YOUNG_GAP_S`` seconds, and older ones less and less often.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping

from attrs import define, field

from temper_core.node.container_programs import Programs
from temper_core.records.executions import ExecutionNews

YOUNG_S = 60.0
"""The age in seconds of a container whose program has normally begun."""
YOUNG_GAP_S = 1.5
AGE_SHARE = 0.1
"""The gap between two reads of an older container, as a share of its age."""
LONGEST_GAP_S = 300.0
"""The longest gap, and that of all while every exec is heard: names also change by prctl(2)."""
LINGER_S = 10.0
"""Seconds for which a program that has ended is still named: supervisors start it again."""
FIRST_REST_S = 0.25
"""The rest after a read for a child of an init. It doubles with every such read."""
LONGEST_READ_REST_S = 16.0
LONGEST_CHANGE_REST_S = 60.0
"""The longest rest after a change of the names below an init. Each change makes a plan."""
CALM_S = 300.0
"""Seconds of calm after which the rests begin anew."""
MOST_READS = 8
"""The containers whose turn it is that are read within ``YOUNG_GAP_S``. A read takes 0.1 ms."""

ReadPrograms = Callable[[str, Collection[str]], Programs]


@define
class _Rest:
    """A rest that doubles with every event, up to a limit. Times are monotonic seconds."""

    events: int = 0
    last_at: float = -math.inf

    def note(self, now: float) -> None:
        """Count an event. The first one after ``CALM_S`` counts as the first of all."""
        self.events = self.events + 1 if now - self.last_at < CALM_S else 0
        self.last_at = now

    def end(self, moment: float, longest_s: float) -> float:
        """Return *moment*, or the end of the rest if that is later."""
        rest_s = min(math.ldexp(FIRST_REST_S, min(self.events, 16)), longest_s)
        return max(moment, self.last_at + rest_s)


@define
class _Entry:
    """The state of one container. All times are monotonic seconds.

    ``seen_at`` has the names below the init. ``is_called`` is true if the next read has a cause,
    and does not wait for its turn. ``is_early`` is true if that is a child of an init.
    """

    born_at: float
    due_at: float
    programs: Programs = field(factory=Programs)
    seen_at: dict[str, float] = field(factory=dict)
    names: tuple[str, ...] = ()
    is_called: bool = False
    is_early: bool = False
    reads: _Rest = field(factory=_Rest)
    changes: _Rest = field(factory=_Rest)

    def call(self, now: float) -> None:
        """Read it at the next look."""
        self.due_at, self.is_called, self.is_early = now, True, False

    def hasten(self, moment: float) -> None:
        """Read it at *moment*, or at the end of the rest, for a child of an init."""
        is_young = moment - self.born_at < YOUNG_S
        longest_s = YOUNG_GAP_S if is_young else LONGEST_READ_REST_S
        moment = self.reads.end(moment, longest_s)
        if moment < self.due_at:
            self.due_at, self.is_called, self.is_early = moment, True, True

    def names_due_at(self, now: float) -> float:
        """Return when ``names`` will change although the programs stay as they are."""
        present = set(self.programs.names[1:])
        ends = [at + LINGER_S for name, at in self.seen_at.items() if name not in present]
        rests = [] if present <= self.seen_at.keys() else [now]
        moments = [self.changes.end(at, LONGEST_CHANGE_REST_S) for at in (*ends, *rests)]
        return min(moments, default=math.inf)

    def name(self, programs: Programs, now: float) -> bool:
        """Take over the names of *programs*. Return whether ``names`` has changed."""
        before, first = self.names, programs.names[:1]
        if first != before[:1]:
            self.seen_at.clear()
        elif now < self.changes.end(now, LONGEST_CHANGE_REST_S):
            return False
        self.seen_at.update(dict.fromkeys(programs.names[1:], now))
        for name in [name for name, at in self.seen_at.items() if at <= now - LINGER_S]:
            del self.seen_at[name]
        self.names = (*first, *sorted(self.seen_at))
        if self.names == before:
            return False
        if first == before[:1]:
            self.changes.note(now)
        return True


class ProgramWatch:
    """The programs of containers, by the paths of their cgroups.

    *read* is called with a path and the names that are known below its init. A look reads the
    containers that have changed, and of those whose turn it is the longest overdue.
    """

    def __init__(self, read: ReadPrograms) -> None:
        self._read = read
        self._entries: dict[str, _Entry] = {}
        self._listeners: dict[int, set[str]] = {}
        self._is_heard = False
        self._turns_from = -math.inf

    def names(self, paths: Iterable[str], now: float) -> Mapping[str, tuple[str, ...]]:
        """Return the names of the programs by path, and forget all other paths."""
        wanted = tuple(paths)
        for path in self._entries.keys() - set(wanted):
            self._listen(path, self._entries.pop(path), Programs())
        for path in wanted:
            if path not in self._entries:
                self._entries[path] = _Entry(now, now)
                self._look_at(path, now)
        self.look(now)
        return {path: self._entries[path].names for path in wanted}

    def look(self, now: float) -> bool:
        """Read the containers that are due. Return whether any name has changed."""
        due = [(path, entry) for path, entry in self._entries.items() if entry.due_at <= now]
        paths = [path for path, entry in due if entry.is_called]
        if now >= self._turns_from:
            turns = sorted((entry.due_at, path) for path, entry in due if not entry.is_called)
            paths += [path for _, path in turns[:MOST_READS]]
            if len(turns) > MOST_READS:
                self._turns_from = now + YOUNG_GAP_S
        changes = [self._look_at(path, now) for path in paths]
        return any(changes)

    def due_at(self) -> float:
        """Return when the next container is due. Infinite without one."""
        return min(map(self._moment, self._entries.values()), default=math.inf)

    def joined(self, paths: Iterable[str], now: float) -> None:
        """Read the containers again that processes were moved into, as young ones."""
        for path in paths:
            if (entry := self._entries.get(path)) is not None:
                entry.born_at = now
                entry.call(now)

    def executed(self, news: ExecutionNews, now: float) -> None:
        """Read the containers again in which a process executed another program."""
        if not (news.is_heard and self._is_heard):
            for entry in self._entries.values():
                entry.hasten(now)
        self._is_heard = news.is_heard
        for execution in news.executions:
            for path in self._listeners.get(execution.pid, ()):
                self._entries[path].call(now)
            for path in self._listeners.get(execution.parent, ()):
                self._entries[path].hasten(now)

    def _look_at(self, path: str, now: float) -> bool:
        entry = self._entries[path]
        if entry.is_early:
            entry.reads.note(now)
        programs = self._read(path, entry.seen_at.keys())
        self._listen(path, entry, programs)
        if programs.age_s is not None:
            entry.born_at = now - programs.age_s
        has_changed = entry.name(programs, now)
        entry.due_at = now + self._gap_s(entry, now)
        entry.is_called = entry.is_early = False
        if programs.again_in_s is not None:
            entry.hasten(now + programs.again_in_s)
        entry.due_at = min(entry.due_at, entry.names_due_at(now))
        return has_changed

    def _listen(self, path: str, entry: _Entry, programs: Programs) -> None:
        for pid in entry.programs.listened - programs.listened:
            self._listeners[pid].discard(path)
            if not self._listeners[pid]:
                del self._listeners[pid]
        for pid in programs.listened - entry.programs.listened:
            self._listeners.setdefault(pid, set()).add(path)
        entry.programs = programs

    def _moment(self, entry: _Entry) -> float:
        return entry.due_at if entry.is_called else max(entry.due_at, self._turns_from)

    def _gap_s(self, entry: _Entry, now: float) -> float:
        """Return the seconds to the next read, if no exec is heard before."""
        if self._is_heard and entry.programs.listened:
            return LONGEST_GAP_S
        age_s = now - entry.born_at
        return YOUNG_GAP_S if age_s < YOUNG_S else min(AGE_SHARE * age_s, LONGEST_GAP_S)
