"""The node's profiles while the agent runs. Edits to files take effect at the next look."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

import structlog

from temper_core.file_watch.path_watch import PathWatch
from temper_core.foreign_writers import foreign_writer
from temper_core.plugin_host import PluginHost
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.completion import Completion, FindEngine, newest_engine
from temper_core.profiles.files import ProfileFiles
from temper_core.profiles.loading import shipped_profiles
from temper_core.profiles.reloads import Reloaded, Reloads, reloaded
from temper_core.profiles.stepwise import Steps, StepwiseTask
from temper_core.records.profiles import LoadedProfile, ProfileFailure, ShapeRange
from temper_core.settings.models import Settings

LONGEST_LOOK_S = 1.0
"""Seconds that a look may hold the agent's loop, which meanwhile hears no request for safe mode."""
Place = tuple[str, str, ShapeRange]
UNREAD = "its profiles are still being read"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ProfileWatch:
    """Holds the catalogue of the last look, replaced as a whole. Any thread may read it.

    Plugins are called for their profiles at construction. *engine* is called at every look.
    *wake* has the loop take the next look soon.

    A look takes about *longest_s* seconds at most. What it leaves is for the next looks, and the
    former catalogue stays until all is read. At construction that is the profiles of plugins.
    """

    def __init__(
        self,
        settings: Settings,
        host: PluginHost,
        engine: FindEngine = newest_engine,
        wake: Callable[[], object] = lambda: None,
        *,
        longest_s: float = LONGEST_LOOK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.catalogue = ProfileCatalogue()
        self.reloads = Reloads(wake)
        self._completion = Completion(engine, enable=settings.profiles.enable)
        self._files = ProfileFiles(Path(settings.profiles.directory))
        self._watch = PathWatch(settings.profiles.directory, inside=True)
        self._host = host
        self._shipped = tuple(shipped_profiles(host))
        self._asked: tuple[Future[Reloaded], ...] = ()
        self._reading = StepwiseTask(self._steps, longest_s, clock)
        self.look()
        if self._reading.is_under_way:
            unread = ProfileFailure(settings.profiles.directory, "", UNREAD)
            self._follow(self._completion.catalogue((unread, *self._shipped)))

    @property
    def is_due(self) -> bool:
        """Whether to look although nothing changed: files are left, or a request waits."""
        return self._reading.is_under_way or bool(self.reloads)

    @property
    def is_heard(self) -> bool:
        """Whether the descriptor reports every change of the files."""
        return self._watch.is_heard

    def fileno(self) -> int:
        """Return the descriptor that is readable when files may have changed. -1 without one."""
        return self._watch.fileno()

    def ask_again(self) -> None:
        """Ask plugins for their profiles that have not answered yet. The next look has them."""
        self._shipped = tuple(shipped_profiles(self._host, again=True))
        self._reading.restart()

    def look(self) -> bool:
        """Read the changed files, or go on with it. Return whether the catalogue changed."""
        catalogue = self._reading.advance()
        return catalogue is not None and self._follow(catalogue)

    def _steps(self) -> Steps[ProfileCatalogue]:
        self._watch.arm()
        if asked := self.reloads.taken():
            self._asked += asked
            self._files.forget()
        entries = yield from self._files.steps()
        return (yield from self._completion.steps((*entries, *self._shipped)))

    def _follow(self, catalogue: ProfileCatalogue) -> bool:
        former, self.catalogue = self.catalogue, catalogue
        if not self._reading.is_under_way:
            for request in self._asked:
                request.set_result(reloaded(former, catalogue))
            self._asked = ()
        if self.catalogue == former:
            return False
        _log_changes(former, self.catalogue)
        return True


def _log_changes(former: ProfileCatalogue, catalogue: ProfileCatalogue) -> None:
    for failure in catalogue.failures:
        if failure not in former.failures:
            log.warning("profile_not_loaded", source=failure.source, reason=failure.reason)
    _log_loaded(_newer(former, catalogue))
    present = {(loaded.source, loaded.profile.id) for loaded in catalogue.profiles}
    for loaded in former.profiles:
        if (loaded.source, loaded.profile.id) not in present:
            log.info("profile_dropped", source=loaded.source, profile=loaded.profile.id)


def _newer(former: ProfileCatalogue, catalogue: ProfileCatalogue) -> list[LoadedProfile]:
    known: defaultdict[Place, list[LoadedProfile]] = defaultdict(list)
    for loaded in former.profiles:
        known[_place(loaded)].append(loaded)
    return [loaded for loaded in catalogue.profiles if loaded not in known[_place(loaded)]]


def _place(loaded: LoadedProfile) -> Place:
    """Return what few profiles share, because comparing all matches of two takes long."""
    return loaded.source, loaded.profile.id, loaded.profile.machine_shape


def _log_loaded(newer: Sequence[LoadedProfile]) -> None:
    """Log each file, and the profiles that a plugin ships in one line."""
    for source, count in Counter(each.source for each in newer if not each.is_file).items():
        log.info("profiles_loaded", source=source, profiles=count)
    for loaded in newer:
        if loaded.is_file:
            _log_file(loaded)
        if loaded.expired:
            log.warning("profile_expired", profile=loaded.profile.id, expired=loaded.expired)


def _log_file(loaded: LoadedProfile) -> None:
    log.info("profile_loaded", source=loaded.source, profile=loaded.profile.id)
    if who := foreign_writer(Path(loaded.source)):
        log.warning("file_writable_by_others", path=loaded.source, writer=who)
