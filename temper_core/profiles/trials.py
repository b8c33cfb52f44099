"""Trial profiles: in force for some pods until released, expired, or the agent ends.

Nothing is written to disk: a restarted agent has no trials. A trial replaces the profile that
annotation, detector or image choose for its pods.
"""

import itertools
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from attrs import define, evolve, field, frozen

from temper_core.errors import InputError
from temper_core.profiles.completion import FindEngine, newest_engine
from temper_core.profiles.engine_limits import engine_misfits
from temper_core.profiles.fingerprints import shape_misfit
from temper_core.records.machine import MachineShape
from temper_core.records.profiles import LoadedProfile, WorkloadProfile
from temper_core.records.trials import TrialState

MOST_TRIALS = 8
MOST_PODS = 64
SHORTEST_S = 1.0
LONGEST_S = 3_600.0

BEGAN = "trial_began"
ENDED = "trial_ended"

NONE: Mapping[str, LoadedProfile] = MappingProxyType({})

Record = Callable[[str, str, str], None]
"""Called with the kind of an event, its subject and its reason."""


@frozen
class _Entry:
    """A trial in the book. ``until`` is in seconds of the book's clock."""

    state: TrialState
    loaded: LoadedProfile
    until: float


@frozen
class BookedTrial:
    """A trial's handle. Implements ``Trial``."""

    id: str
    _book: "TrialBook"

    def is_active(self) -> bool:
        """Whether it is still in force."""
        return any(state.id == self.id for state in self._book.states())

    def release(self) -> None:
        """End it. Safe to call twice."""
        self._book.release(self.id)


@define(eq=False)
class TrialBook:
    """The trials of this node. Any thread may call every method.

    Attributes:
        pods: Returns the keys of the pods of this node.
        machine: The machine that a profile's shape has to fit.
        engine: Returns the capabilities of the installed engine.
        changed: Called after a trial began or ended, on the calling thread.
        record: Stores an event.
        clock: Monotonic seconds.

    """

    pods: Callable[[], Collection[str]] = tuple
    machine: MachineShape = MachineShape.uniform(1)
    engine: FindEngine = newest_engine
    changed: Callable[[], None] = lambda: None
    record: Record = lambda _kind, _subject, _reason: None
    clock: Callable[[], float] = time.monotonic
    _entries: Mapping[str, _Entry] = field(factory=dict, init=False)
    _numbers: "itertools.count[int]" = field(factory=lambda: itertools.count(1), init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def start(
        self, owner: str, profile: WorkloadProfile, pods: Sequence[str], seconds: float
    ) -> BookedTrial:
        """Put *profile* in force for *pods* during *seconds*.

        Raises InputError if the bounds, the pods of this node, other trials, the machine or the
        engine do not allow it.
        """
        keys = tuple(dict.fromkeys(pods))
        self._require(profile, keys, seconds)
        with self._lock:
            self._require_room(keys)
            number = f"{next(self._numbers)}"
            state = TrialState(number, owner, profile.id, keys, time.time() + seconds)
            loaded = LoadedProfile(profile, source=f"trial {number} of {owner}")
            entry = _Entry(state, loaded, self.clock() + seconds)
            self._entries = {**self._entries, number: entry}
        self.record(BEGAN, ", ".join(keys), f"{profile.id} for {seconds:g} s, asked by {owner}")
        self.changed()
        return BookedTrial(number, self)

    def states(self) -> tuple[TrialState, ...]:
        """Return the trials that are in force."""
        now = self.clock()
        return tuple(entry.state for entry in self._entries.values() if entry.until > now)

    def release(self, number: str) -> bool:
        """End a trial. Return whether it was in force."""
        return self._end({number: "released"})

    def release_all(self, owner: str) -> None:
        """End every trial of *owner*."""
        entries = self._entries.items()
        self._end({number: "released" for number, e in entries if e.state.owner == owner})

    def profiles(self) -> Mapping[str, LoadedProfile]:
        """Return the trial profiles by pod, after ending expired trials and those without pods."""
        if not self._entries:
            return NONE
        now, present = self.clock(), self.pods()
        over = {n: "expired" for n, trial in self._entries.items() if trial.until <= now}
        for number, trial in self._entries.items():
            remaining = tuple(key for key in trial.state.pods if key in present)
            if not remaining:
                over.setdefault(number, "its pods are gone")
            elif remaining != trial.state.pods:
                self._keep(number, remaining)
        self._end(over)
        return {key: e.loaded for e in self._entries.values() for key in e.state.pods}

    def due_at(self) -> float:
        """Return when the next trial expires, in seconds of the clock. Infinity without one."""
        return min((entry.until for entry in self._entries.values()), default=math.inf)

    def _require(self, profile: WorkloadProfile, keys: Sequence[str], seconds: float) -> None:
        if not SHORTEST_S <= seconds <= LONGEST_S:
            raise InputError(f"seconds must be {SHORTEST_S:g} to {LONGEST_S:g}, not {seconds:g}")
        if not 1 <= len(keys) <= MOST_PODS:
            raise InputError(f"pods must be 1 to {MOST_PODS}, not {len(keys)}")
        present = self.pods()
        if absent := [key for key in keys if key not in present]:
            raise InputError(f"pods: {absent[0]!r} is not on this node")
        if misfit := shape_misfit(profile.machine_shape, self.machine):
            raise InputError(f"profile {profile.id}: {misfit}")
        if misfits := engine_misfits(profile, self.engine()):
            raise InputError(f"profile {profile.id}: {misfits[0]}")

    def _require_room(self, keys: Sequence[str]) -> None:
        now = self.clock()
        standing = [entry for entry in self._entries.values() if entry.until > now]
        if len(standing) >= MOST_TRIALS:
            raise InputError(f"{MOST_TRIALS} trials are in force already; release one")
        for entry in standing:
            if shared := set(keys) & set(entry.state.pods):
                trial = f"trial {entry.state.id} of {entry.state.owner}"
                raise InputError(f"pods: {min(shared)!r} is in {trial}")

    def _keep(self, number: str, pods: tuple[str, ...]) -> None:
        with self._lock:
            entry = self._entries.get(number)
            if entry is not None:
                reduced = evolve(entry, state=evolve(entry.state, pods=pods))
                self._entries = {**self._entries, number: reduced}

    def _end(self, reasons: Mapping[str, str]) -> bool:
        with self._lock:
            ended = [self._entries[number] for number in reasons if number in self._entries]
            self._entries = {n: entry for n, entry in self._entries.items() if n not in reasons}
        for entry in ended:
            pods = ", ".join(entry.state.pods)
            self.record(ENDED, pods, f"{entry.state.profile}: {reasons[entry.state.id]}")
        if ended:
            self.changed()
        return bool(ended)
