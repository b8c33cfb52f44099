"""The node's profiles while the agent runs. Edits to files take effect at the next look."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from temper_core.file_watch.path_watch import PathWatch
from temper_core.foreign_writers import foreign_writer
from temper_core.plugin_host import PluginHost
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.completion import Completion, FindEngine, newest_engine
from temper_core.profiles.files import ProfileFiles
from temper_core.profiles.loading import shipped_profiles
from temper_core.profiles.reloads import Reloads, reloaded
from temper_core.records.profiles import LoadedProfile
from temper_core.settings.models import Settings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ProfileWatch:
    """Holds the catalogue of the last look, replaced as a whole. Any thread may read it.

    Plugins are called for their profiles at construction. *engine* is called at every look.
    *wake* has the loop take the next look soon.
    """

    def __init__(
        self,
        settings: Settings,
        host: PluginHost,
        engine: FindEngine = newest_engine,
        wake: Callable[[], object] = lambda: None,
    ) -> None:
        self.catalogue = ProfileCatalogue()
        self.reloads = Reloads(wake)
        self._completion = Completion(engine, enable=settings.profiles.enable)
        self._files = ProfileFiles(Path(settings.profiles.directory))
        self._watch = PathWatch(settings.profiles.directory, inside=True)
        self._host = host
        self._shipped = tuple(shipped_profiles(host))
        self.look()

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

    def look(self) -> bool:
        """Read the changed files. Return whether the catalogue changed."""
        self._watch.arm()
        asked = self.reloads.taken()
        if asked:
            self._files.forget()
        entries = (*self._files.look(), *self._shipped)
        former, self.catalogue = self.catalogue, self._completion.catalogue(entries)
        for request in asked:
            request.set_result(reloaded(former, self.catalogue))
        if self.catalogue == former:
            return False
        _log_changes(former, self.catalogue)
        return True


def _log_changes(former: ProfileCatalogue, catalogue: ProfileCatalogue) -> None:
    for failure in catalogue.failures:
        if failure not in former.failures:
            log.warning("profile_not_loaded", source=failure.source, reason=failure.reason)
    _log_loaded([loaded for loaded in catalogue.profiles if loaded not in former.profiles])
    present = {(loaded.source, loaded.profile.id) for loaded in catalogue.profiles}
    for loaded in former.profiles:
        if (loaded.source, loaded.profile.id) not in present:
            log.info("profile_dropped", source=loaded.source, profile=loaded.profile.id)


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
