"""Profiles that extend others are completed, and all are held against what the engine takes.

A parent may be tuned for several machines. Its child then is, too, and gives one profile for each.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import define, evolve, field, frozen

from temper_core.engine.capabilities import Capabilities, capabilities_of
from temper_core.engine.installed import find_installed
from temper_core.errors import DocumentError, TemperError
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.documents import complete
from temper_core.profiles.engine_limits import engine_misfits
from temper_core.profiles.files import Entry
from temper_core.profiles.fingerprints import preference
from temper_core.profiles.tables import DerivedProfile
from temper_core.records.profiles import LoadedProfile, ProfileFailure, ShapeRange

DEEPEST = 8
"""How many profiles may be extended one by another in a row."""
LONGEST_PATH = 100
"""How many of them are followed to find that out."""
MOST_VARIANTS = 64
"""How many machines one profile may come to be for by way of its parents."""

TOO_DEEP = f"more than {DEEPEST} profiles extend one another"

FindEngine = Callable[[], Capabilities]
Owner = tuple[str, str]


def newest_engine() -> Capabilities:
    """Return what the newest engine that is known takes."""
    return capabilities_of(None)


def installed_engine(name: str) -> FindEngine:
    """Return who asks what the engine of that name or path takes. Where there is none, the newest.

    An engine that is replaced while the agent runs answers from the next look on.
    """

    def ask() -> Capabilities:
        try:
            return capabilities_of(find_installed(name).version)
        except TemperError:
            return newest_engine()

    return ask


def today() -> dt.date:
    """Return the date at UTC."""
    return dt.datetime.now(dt.UTC).date()


@frozen
class _Outcome:
    """What one document came to: the profiles that it stands for, and what is wrong with others."""

    sound: tuple[LoadedProfile, ...] = ()
    problems: tuple[str, ...] = ()


@frozen
class _Last:
    """What was completed last: out of what, for which engine, on which day."""

    given: tuple[tuple[Entry, ...], Capabilities, dt.date]
    catalogue: ProfileCatalogue


@define(eq=False)
class Completion:
    """Makes catalogues, and remembers of each source what it last stood for.

    A profile that can no longer be completed, or that the engine cannot take, stays what it was,
    beside the failure. One that is gone is gone.
    """

    engine: FindEngine = newest_engine
    clock: Callable[[], dt.date] = today
    _good: dict[Owner, tuple[LoadedProfile, ...]] = field(factory=dict, init=False)
    _last: "_Last | None" = field(default=None, init=False)

    def catalogue(self, entries: Iterable[Entry]) -> ProfileCatalogue:
        """Complete the profiles among *entries*, in their order. Raises nothing.

        Where nothing is new the catalogue is the same as the last time: the agent asks every half
        minute, and to complete a profile takes tens of milliseconds.
        """
        given = (tuple(entries), self.engine(), self.clock())
        if self._last is None or self._last.given != given:
            self._last = _Last(given, self._completed(*given))
        return self._last.catalogue

    def _completed(
        self, found: tuple[Entry, ...], capabilities: Capabilities, date: dt.date
    ) -> ProfileCatalogue:
        failures = [entry for entry in found if isinstance(entry, ProfileFailure)]
        loaded = tuple(entry for entry in found if isinstance(entry, LoadedProfile))
        family = _Family(loaded, failures)
        by_owner = self._outcomes(family, capabilities, failures)
        self._good = {owner: outcome.sound for owner, outcome in by_owner.items() if outcome.sound}
        told = [each for outcome in by_owner.values() for each in outcome.sound]
        profiles = tuple(_first_claims(told, failures))
        return ProfileCatalogue(
            tuple(_dated(each, date) for each in profiles),
            tuple(sorted(failures, key=lambda failure: failure.source)),
        )

    def _outcomes(
        self, family: "_Family", capabilities: Capabilities, failures: list[ProfileFailure]
    ) -> dict[Owner, _Outcome]:
        grouped: defaultdict[Owner, list[_Outcome]] = defaultdict(list)
        for entry in family.loaded:
            checked = _checked(family.of(entry), capabilities)
            grouped[entry.source, entry.profile.id].append(checked)
        return {
            owner: self._kept(owner, _together(outcomes), failures)
            for owner, outcomes in grouped.items()
        }

    def _kept(self, owner: Owner, outcome: _Outcome, failures: list[ProfileFailure]) -> _Outcome:
        """Report what is wrong, and fall back to what the source last stood for."""
        if not outcome.problems:
            return outcome
        former = () if outcome.sound else self._good.get(owner, ())
        stays = "; its last good version stays in force" if former else ""
        problems = tuple(dict.fromkeys(outcome.problems))
        failures.append(ProfileFailure(*owner, "; ".join(problems) + stays, problems))
        return _Outcome(outcome.sound or former)


@define(eq=False)
class _Family:
    """The documents of a node by id, and what became of each."""

    loaded: tuple[LoadedProfile, ...]
    failures: Sequence[ProfileFailure]
    _known: dict[int, _Outcome] = field(factory=dict, init=False)
    _path: list[LoadedProfile] = field(factory=list, init=False)

    def of(self, entry: LoadedProfile) -> _Outcome:
        """Return what *entry* stands for, with all that it takes from others."""
        if not isinstance(entry.profile, DerivedProfile):
            return _Outcome((entry,))
        if any(each is entry for each in self._path):
            ids = [each.profile.id for each in self._path]
            return _Outcome(problems=(f"extends itself: {' extends '.join([*ids, ids[0]])}",))
        if len(self._path) >= LONGEST_PATH:
            return _Outcome(problems=(TOO_DEEP,))
        if id(entry) not in self._known:
            self._path.append(entry)
            self._known[id(entry)] = self._completed(entry, entry.profile)
            self._path.pop()
        return self._known[id(entry)]

    def _completed(self, entry: LoadedProfile, child: DerivedProfile) -> _Outcome:
        parents = self._parents(entry, child)
        if not parents:
            return _Outcome(problems=(self._absence(child),))
        problems: list[str] = []
        bases: list[LoadedProfile] = []
        for parent in parents:
            outcome = self.of(parent)
            bases += outcome.sound
            if not outcome.sound:
                problems += [f"extends {child.extends!r}: {each}" for each in outcome.problems]
        sound: dict[ShapeRange, LoadedProfile] = {}
        for base in sorted(bases, key=preference):
            if len(base.lineage) >= DEEPEST:
                problems.append(TOO_DEEP)
                continue
            try:
                made = complete(child, base.profile, entry.source)
            except DocumentError as error:
                problems += error.problems
            else:
                lineage = (f"{base.profile.id} ({base.source})", *base.lineage)
                sound.setdefault(made.machine_shape, evolve(entry, profile=made, lineage=lineage))
        if len(sound) > MOST_VARIANTS:
            return _Outcome(problems=(f"would be for more than {MOST_VARIANTS} machine shapes",))
        return _Outcome(tuple(sound.values()), tuple(problems))

    def _parents(self, entry: LoadedProfile, child: DerivedProfile) -> list[LoadedProfile]:
        """Return the documents of the id that is extended: files, or else what plugins ship.

        A file of that id itself extends what is shipped under it.
        """
        named = [each for each in self.loaded if each.profile.id == child.extends]
        files = [each for each in named if each.is_file]
        shipped = [each for each in named if not each.is_file]
        if child.extends == child.id and entry.is_file:
            return shipped
        return files or shipped

    def _absence(self, child: DerivedProfile) -> str:
        for failure in self.failures:
            if failure.profile == child.extends:
                why = f"which could not be loaded ({failure.source}: {failure.reason})"
                return f"extends {child.extends!r}, {why}"
        ids = sorted({each.profile.id for each in self.loaded} - {child.id})
        return (
            f"extends {child.extends!r}, which is not there; there are {', '.join(ids) or 'none'}"
        )


def _checked(outcome: _Outcome, capabilities: Capabilities) -> _Outcome:
    """Leave out the profiles that the engine cannot take."""
    misfits = [(each, engine_misfits(each.profile, capabilities)) for each in outcome.sound]
    sound = tuple(each for each, problems in misfits if not problems)
    problems = tuple(problem for _, found in misfits for problem in found)
    return _Outcome(sound, (*outcome.problems, *problems))


def _together(outcomes: Sequence[_Outcome]) -> _Outcome:
    return _Outcome(
        tuple(each for outcome in outcomes for each in outcome.sound),
        tuple(each for outcome in outcomes for each in outcome.problems),
    )


def _first_claims(
    loaded: Iterable[LoadedProfile], failures: list[ProfileFailure]
) -> Iterator[LoadedProfile]:
    """Yield the first of each id and machine shape among files, and among what is shipped."""
    owners: dict[tuple[bool, str, ShapeRange], LoadedProfile] = {}
    for each in loaded:
        claim = (each.is_file, each.profile.id, each.profile.machine_shape)
        owner = owners.setdefault(claim, each)
        if owner is each:
            yield each
        else:
            reason = f"has the id and the machine_shape of {owner.source}, which comes first"
            failures.append(ProfileFailure(each.source, each.profile.id, reason))


def _dated(loaded: LoadedProfile, date: dt.date) -> LoadedProfile:
    evidence = loaded.profile.evidence
    return evolve(loaded, expired=evidence.expires) if evidence.expired_on(date) else loaded
