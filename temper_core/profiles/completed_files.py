"""Profile files as the agent would have them: with all that they take from others."""

from collections.abc import Sequence
from pathlib import Path

from temper_core.errors import DocumentError
from temper_core.plugin_host import load_host
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.completion import Completion, installed_engine
from temper_core.profiles.files import Entry, ProfileFiles, read_profile
from temper_core.profiles.loading import shipped_profiles
from temper_core.records.profiles import WorkloadProfile
from temper_core.settings import load


def completed_files(
    paths: Sequence[Path], *, settings: Path | None = None, directory: Path | None = None
) -> ProfileCatalogue:
    """Complete the profiles of *paths*, which may extend one another and all that the node has.

    A file that cannot be loaded is among the failures, by its path. *directory* takes the place of
    the one that the settings name. Raises DocumentError for settings that do not fit.
    """
    effective = load(settings).settings
    around = ProfileFiles(directory or Path(effective.profiles.directory)).look()
    given = [read_profile(path) for path in dict.fromkeys(paths)]
    entries: list[Entry] = [
        *given,
        *(entry for entry in around if not _is_given(entry.source, paths)),
        *shipped_profiles(load_host(effective)),
    ]
    engine = installed_engine(effective.scheduler.engine)
    return Completion(engine, enable=effective.profiles.enable).catalogue(entries)


def completed_profiles(
    path: Path, *, settings: Path | None = None, directory: Path | None = None
) -> tuple[WorkloadProfile, ...]:
    """Return the profiles of the file at *path* as the agent would load them.

    Raises DocumentError with every reason for which one of them cannot be loaded.
    """
    catalogue = completed_files([path], settings=settings, directory=directory)
    problems = [
        problem
        for failure in catalogue.failures
        if failure.source == str(path)
        for problem in failure.problems or (failure.reason,)
    ]
    if problems:
        raise DocumentError(str(path), problems)
    return tuple(loaded.profile for loaded in catalogue.profiles if loaded.source == str(path))


def _is_given(source: str, paths: Sequence[Path]) -> bool:
    return any(Path(source).absolute() == path.absolute() for path in paths)
