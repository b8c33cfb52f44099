"""Reads the thread profiles of a directory."""

from pathlib import Path

from attrs import frozen

from temper_core import DocumentError, WorkloadProfile, completed_profiles, parse_profile, read_text
from temper_plugin_power.workloads.thread_profiles import ThreadProfiles

MOST_FILES = 1000


@frozen
class ProfileFiles:
    """A directory's contents: the thread profiles, and a line about each file that is left out."""

    profiles: ThreadProfiles = ThreadProfiles()
    left_out: tuple[str, ...] = ()


def read_profile_files(directory: Path) -> ProfileFiles:
    """Return the profiles of the files ``*.toml`` by name. Hidden files are no profiles.

    A profile that extends another is completed as an agent of this host would. Raises
    DocumentError if the directory cannot be listed.
    """
    try:
        paths = sorted(path for path in directory.iterdir() if _is_profile(path))
    except OSError as error:
        problem = f"cannot be listed: {error.strerror}"
        raise DocumentError(str(directory), [problem]) from error
    profiles: list[WorkloadProfile] = []
    left_out = []
    for path in paths[:MOST_FILES]:
        try:
            profiles += _read(path, directory)
        except DocumentError as error:
            left_out.append(f"left out: {error.lines[0]}")
    if len(paths) > MOST_FILES:
        left_out.append(f"{directory}: files after the first {MOST_FILES} are left out")
    return ProfileFiles(ThreadProfiles(tuple(profiles)), tuple(left_out))


def _read(path: Path, directory: Path) -> tuple[WorkloadProfile, ...]:
    profile = parse_profile(read_text(path), str(path))
    if hasattr(profile, "extends"):
        return completed_profiles(path, directory=directory)
    return (profile,)


def _is_profile(path: Path) -> bool:
    return path.name.endswith(".toml") and not path.name.startswith(".")
