"""Complete profiles that extend others, and check all profiles against the engine's limits.

If a parent is tuned for several machines, its child becomes one profile for each.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import define, evolve, field, frozen

from temper_core.bounded_text import first_of
from temper_core.engine.capabilities import Capabilities, capabilities_of
from temper_core.engine.installed import find_installed
from temper_core.errors import DocumentError, TemperError
from temper_core.profiles.catalogue import MOST_NAMED, ProfileCatalogue
from temper_core.profiles.completion_bounds import CompletionRoom, beyond_room
from temper_core.profiles.documents import complete
from temper_core.profiles.enabling import disabled_reason, unknown_ids
from temper_core.profiles.engine_limits import engine_misfits
from temper_core.profiles.files import Entry
from temper_core.profiles.fingerprints import preference
from temper_core.profiles.recognition import within_globs
from temper_core.profiles.stepwise import Steps, all_of
from temper_core.records.profiles import (
    DerivedProfile,
    LoadedProfile,
    ProfileFailure,
    ShapeRange,
    bounded_problems,
)

DEEPEST = 8
"""The longest chain of profiles that extend each other."""
LONGEST_PATH = 100
"""The longest chain that is followed to detect a chain that is too deep."""
MOST_VARIANTS = 64
"""The most machine shapes that one profile may get from its parents."""

TOO_DEEP = f"more than {DEEPEST} profiles extend one another"

FindEngine = Callable[[], Capabilities]
Owner = tuple[str, str]


def newest_engine() -> Capabilities:
    """Return the capabilities of the newest known engine."""
    return capabilities_of(None)


def installed_engine(name: str) -> FindEngine:
    """Return a function that finds the capabilities of the engine with that name or path.

    It falls back to the newest known engine, and notices an engine replaced while the agent runs.
    """

    def ask() -> Capabilities:
        try:
            return capabilities_of(find_installed(name).version)
        except TemperError:
            return newest_engine()

    return ask


def today() -> dt.date:
    """Return today's date in UTC."""
    return dt.datetime.now(dt.UTC).date()


@frozen
class _Outcome:
    """The result of one document: its sound profiles, and the problems of the others.

    The problems are bounded, as each of many children repeats those of its parent.
    """

    sound: tuple[LoadedProfile, ...] = ()
    problems: tuple[str, ...] = field(default=(), converter=bounded_problems)


@frozen
class _Last:
    """The last catalogue, and its input: entries, engine and date."""

    given: tuple[tuple[Entry, ...], Capabilities, dt.date]
    catalogue: ProfileCatalogue


@define(eq=False)
class Completion:
    """Makes catalogues, and remembers the last good profiles of each source.

    A profile that can no longer be completed, or that the engine cannot take, keeps its last good
    version, beside the failure. A removed profile is dropped. ``enable`` are ids of profiles that
    are enabled though their documents disable them.
    """

    engine: FindEngine = newest_engine
    clock: Callable[[], dt.date] = today
    enable: tuple[str, ...] = ()
    _good: dict[Owner, tuple[LoadedProfile, ...]] = field(factory=dict, init=False)
    _last: "_Last | None" = field(default=None, init=False)

    def catalogue(self, entries: Iterable[Entry]) -> ProfileCatalogue:
        """Complete the profiles among *entries*, in their order. Raises nothing.

        Equal input returns the last catalogue: the agent calls this every half minute, and
        completing a profile takes tens of milliseconds.
        """
        return all_of(self.steps(entries))

    def steps(self, entries: Iterable[Entry]) -> Steps[ProfileCatalogue]:
        """Do ``catalogue``, a profile at each step."""
        inputs = (tuple(entries), self.engine(), self.clock())
        if self._last is None or self._last.given != inputs:
            self._last = _Last(inputs, (yield from self._completed(*inputs)))
        return self._last.catalogue

    def _completed(
        self, entries: tuple[Entry, ...], capabilities: Capabilities, date: dt.date
    ) -> Steps[ProfileCatalogue]:
        failures = [entry for entry in entries if isinstance(entry, ProfileFailure)]
        loaded = tuple(entry for entry in entries if isinstance(entry, LoadedProfile))
        family = _Family(loaded, failures)
        by_owner = yield from self._outcomes(family, capabilities, failures)
        self._good = {owner: outcome.sound for owner, outcome in by_owner.items() if outcome.sound}
        completed = [item for outcome in by_owner.values() for item in outcome.sound]
        profiles = tuple(within_globs(_first_claims(completed, failures), failures))
        failures += unknown_ids(self.enable, profiles)
        return ProfileCatalogue(
            tuple(self._judged(item, date) for item in profiles),
            tuple(sorted(failures, key=lambda failure: failure.source)),
        )

    def _judged(self, loaded: LoadedProfile, date: dt.date) -> LoadedProfile:
        """Return *loaded* with the reservations that today and the settings have about it."""
        evidence = loaded.profile.evidence
        expired = evidence.expires if evidence.expired_on(date) else ""
        disabled = disabled_reason(loaded.profile, self.enable)
        return evolve(loaded, expired=expired, disabled=disabled)

    def _outcomes(
        self, family: "_Family", capabilities: Capabilities, failures: list[ProfileFailure]
    ) -> Steps[dict[Owner, _Outcome]]:
        grouped: defaultdict[Owner, list[_Outcome]] = defaultdict(list)
        for entry in family.loaded:
            outcome = yield from family.of(entry)
            checked = yield from _checked(outcome, capabilities)
            grouped[entry.source, entry.profile.id].append(checked)
            yield
        together = {owner: _together(outcomes) for owner, outcomes in grouped.items()}
        return {
            owner: self._kept(owner, outcome, failures, family.room)
            if outcome.problems
            else outcome
            for owner, outcome in together.items()
        }

    def _kept(
        self,
        owner: Owner,
        outcome: _Outcome,
        failures: list[ProfileFailure],
        room: CompletionRoom,
    ) -> _Outcome:
        """Report the problems, and fall back to the last good profiles of the source."""
        former = () if outcome.sound else self._good.get(owner, ())
        former = former if room.takes_former(former) else ()
        stays = "; its last good version stays in force" if former else ""
        problems = tuple(dict.fromkeys(outcome.problems))
        failures.append(ProfileFailure.of(*owner, problems, stays))
        return _Outcome(outcome.sound or former)


@define(eq=False)
class _Family:
    """The documents of a node by id, and the outcome of each."""

    loaded: tuple[LoadedProfile, ...]
    failures: Sequence[ProfileFailure]
    room: CompletionRoom = field(factory=CompletionRoom, init=False)
    _known: dict[int, _Outcome] = field(factory=dict, init=False)
    _path: list[LoadedProfile] = field(factory=list, init=False)

    def of(self, entry: LoadedProfile) -> Steps[_Outcome]:
        """Return the completed profiles of *entry*, after a step for each."""
        if not isinstance(entry.profile, DerivedProfile):
            return _Outcome((entry,))
        if any(step is entry for step in self._path):
            ids = [step.profile.id for step in self._path]
            return _Outcome(problems=(f"extends itself: {' extends '.join([*ids, ids[0]])}",))
        if len(self._path) >= LONGEST_PATH:
            return _Outcome(problems=(TOO_DEEP,))
        if id(entry) not in self._known:
            self._path.append(entry)
            self._known[id(entry)] = yield from self._completed(entry, entry.profile)
            self._path.pop()
        return self._known[id(entry)]

    def _completed(self, entry: LoadedProfile, child: DerivedProfile) -> Steps[_Outcome]:
        parents = self._parents(entry, child)
        if not parents:
            return _Outcome(problems=(self._absence(child),))
        problems: list[str] = []
        bases: list[LoadedProfile] = []
        for parent in parents:
            outcome = yield from self.of(parent)
            bases += outcome.sound
            if not outcome.sound:
                problems += [f"extends {child.extends!r}: {item}" for item in outcome.problems]
        if not self.room.takes_children(child, bases):
            return _Outcome(problems=(beyond_room(),))
        sound: dict[ShapeRange, LoadedProfile] = {}
        for base in sorted(bases, key=preference):
            if len(base.lineage) >= DEEPEST:
                problems.append(TOO_DEEP)
                continue
            try:
                made = complete(child, base.profile, entry.source)
            except DocumentError as error:
                problems += bounded_problems(error.problems)
            else:
                lineage = (f"{base.profile.id} ({base.source})", *base.lineage)
                sound.setdefault(made.machine_shape, evolve(entry, profile=made, lineage=lineage))
            yield
        if len(sound) > MOST_VARIANTS:
            return _Outcome(problems=(f"would be for more than {MOST_VARIANTS} machine shapes",))
        return _Outcome(tuple(sound.values()), tuple(problems))

    def _parents(self, entry: LoadedProfile, child: DerivedProfile) -> list[LoadedProfile]:
        """Return the documents with the extended id: files, or else those that plugins ship.

        A file with that same id extends the shipped documents.
        """
        candidates = [other for other in self.loaded if other.profile.id == child.extends]
        files = [other for other in candidates if other.is_file]
        shipped = [other for other in candidates if not other.is_file]
        if child.extends == child.id and entry.is_file:
            return shipped
        return files or shipped

    def _absence(self, child: DerivedProfile) -> str:
        for failure in self.failures:
            if failure.profile == child.extends:
                why = f"which could not be loaded ({failure.source}: {failure.reason})"
                return f"extends {child.extends!r}, {why}"
        ids = sorted({entry.profile.id for entry in self.loaded} - {child.id})
        return (
            f"extends {child.extends!r}, which is not there; "
            f"there are {', '.join(first_of(ids, MOST_NAMED)) or 'none'}"
        )


def _checked(outcome: _Outcome, capabilities: Capabilities) -> Steps[_Outcome]:
    """Leave out the profiles that the engine cannot support, after a step for each."""
    sound: list[LoadedProfile] = []
    problems = list(outcome.problems)
    for loaded in outcome.sound:
        misfits = engine_misfits(loaded.profile, capabilities)
        problems += misfits
        if not misfits:
            sound.append(loaded)
        yield
    return _Outcome(tuple(sound), tuple(problems))


def _together(outcomes: Sequence[_Outcome]) -> _Outcome:
    return _Outcome(
        tuple(item for outcome in outcomes for item in outcome.sound),
        tuple(item for outcome in outcomes for item in outcome.problems),
    )


def _first_claims(
    loaded: Iterable[LoadedProfile], failures: list[ProfileFailure]
) -> Iterator[LoadedProfile]:
    """Yield the first of each id and machine shape, among files and among shipped profiles."""
    owners: dict[tuple[bool, str, ShapeRange], LoadedProfile] = {}
    for candidate in loaded:
        claim = (candidate.is_file, candidate.profile.id, candidate.profile.machine_shape)
        owner = owners.setdefault(claim, candidate)
        if owner is candidate:
            yield candidate
        else:
            reason = f"has the id and the machine_shape of {owner.source}, which comes first"
            failures.append(ProfileFailure(candidate.source, candidate.profile.id, reason))
