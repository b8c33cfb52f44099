"""Read a directory's profile files when they change, and keep the last good version of each."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from attrs import evolve, frozen

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.profiles.documents import profile_of
from temper_core.profiles.stepwise import Steps, all_of
from temper_core.profiles.tables import Table
from temper_core.records.profiles import DerivedProfile, LoadedProfile, ProfileFailure, ShapeRange

LARGEST_PROFILE_BYTES = 256 * 1024
"""Bytes. Parsing takes time of the agent's loop. The shipped profiles have 2 KiB."""

MOST_FILES = 1_000
MOST_BYTES = 8 * 1024 * 1024
"""Bytes of all files."""

SETTLED_NS = 2_000_000_000
"""A file written less than this ago may change again with the same times: those of older kernels
advance every 10 ms, those of some file systems every 2 s."""

Entry = LoadedProfile | ProfileFailure
Claim = tuple[str, ShapeRange, str]
Sign = tuple[int, ...]


@frozen
class _Seen:
    """The last result of a file, and its last good one. Without ``sign`` it is read again."""

    sign: Sign | None
    entry: Entry
    good: LoadedProfile | None


class ProfileFiles:
    """Reads the profiles of *directory*. A missing directory is empty.

    A file that can no longer be read keeps its last good version, beside the failure. A removed
    file is dropped.
    """

    def __init__(self, directory: Path, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._directory = directory
        self._clock_ns = clock_ns
        self._seen: dict[Path, _Seen] = {}

    def look(self) -> tuple[Entry, ...]:
        """Return the current entries in the order of the file names. Raises nothing."""
        return all_of(self.steps())

    def steps(self) -> Steps[tuple[Entry, ...]]:
        """Do ``look``, a file at each step."""
        try:
            paths = profile_files(self._directory)
        except FileNotFoundError:
            paths = []
        except OSError as error:
            return (self._failure(error.strerror or str(error)), *self._entries())
        count = _count_within_bounds(paths)
        for path in paths[:count]:
            self._seen[path] = self._follow(path)
            yield
        self._seen = {path: self._seen[path] for path in paths[:count]}
        if count < len(paths):
            reason = (
                f"holds {len(paths)} profiles; those after the first {count} are left out, "
                f"as the bounds are {MOST_FILES} files and {MOST_BYTES} bytes"
            )
            return (self._failure(reason), *self._entries())
        return self._entries()

    def forget(self) -> None:
        """Have the next look read all files, also those that do not seem to have changed.

        The last good version of each stays.
        """
        self._seen = {path: evolve(seen, sign=None) for path, seen in self._seen.items()}

    def _failure(self, reason: str) -> ProfileFailure:
        return ProfileFailure(str(self._directory), "", reason)

    def _follow(self, path: Path) -> _Seen:
        before = self._seen.get(path)
        sign = _sign(path, self._clock_ns())
        if before is not None and sign is not None and before.sign == sign:
            return before
        entry = read_profile(path)
        good = entry if isinstance(entry, LoadedProfile) else before.good if before else None
        return _Seen(sign, entry, good)

    def _entries(self) -> tuple[Entry, ...]:
        """Return the entries in the order of the files. Each id and shape belongs to one."""
        owners: dict[Claim, Path] = {}
        entries = [*self._sound(owners), *self._spoiled(owners)]
        return tuple(sorted(entries, key=lambda entry: entry.source))

    def _sound(self, owners: dict[Claim, Path]) -> Iterator[Entry]:
        for path, state in self._seen.items():
            if isinstance(state.entry, LoadedProfile):
                owner = owners.setdefault(_claim(state.entry), path)
                yield state.entry if owner == path else _doubled(state.entry, owner)

    def _spoiled(self, owners: dict[Claim, Path]) -> Iterator[Entry]:
        """Yield failures, and last good versions whose claim no sound file has taken since."""
        for path, state in self._seen.items():
            if isinstance(state.entry, LoadedProfile):
                continue
            if state.good is None or owners.setdefault(_claim(state.good), path) != path:
                yield state.entry
                continue
            yield state.good
            yield _outlived(state.entry, state.good)


def profile_files(directory: Path) -> list[Path]:
    """Return the profile files of *directory* by name. Raise OSError if it cannot be listed."""
    # A mounted ConfigMap holds its files as links into a hidden folder: links are followed,
    # hidden names are ignored.
    with os.scandir(directory) as entries:
        names = sorted(entry.name for entry in entries if _is_profile(entry.name))
    return [directory / name for name in names]


def _is_profile(name: str) -> bool:
    return name.endswith(".toml") and not name.startswith(".")


def _count_within_bounds(paths: Sequence[Path]) -> int:
    """Return how many of the first *paths* may be read together."""
    total = 0
    for count, path in enumerate(paths[:MOST_FILES]):
        total += _size(path)
        if total > MOST_BYTES:
            return count
    return min(len(paths), MOST_FILES)


def _size(path: Path) -> int:
    """Return the bytes that are read of the file. 0 if it is refused."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return size if size <= LARGEST_PROFILE_BYTES else 0


def _claim(loaded: LoadedProfile) -> Claim:
    # The machine shape of a profile that extends another is known only after completion.
    is_derived = isinstance(loaded.profile, DerivedProfile)
    return loaded.profile.id, loaded.profile.machine_shape, loaded.source if is_derived else ""


def _doubled(loaded: LoadedProfile, owner: Path) -> ProfileFailure:
    reason = f"has the id and the machine_shape of {owner.name}, whose name comes first"
    return ProfileFailure(loaded.source, loaded.profile.id, reason)


def _outlived(failure: ProfileFailure, good: LoadedProfile) -> ProfileFailure:
    reason = f"{failure.reason}; its last good version stays in force"
    profile_id = failure.profile or good.profile.id
    return ProfileFailure(failure.source, profile_id, reason, failure.problems)


def _sign(path: Path, now_ns: int) -> Sign | None:
    """Return a key that changes with the file (a link's target). ``None`` if it is uncertain."""
    try:
        info = path.stat()
    except OSError:
        return None
    if abs(now_ns - info.st_ctime_ns) < SETTLED_NS:
        return None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def read_profile_text(path: Path) -> str:
    """Return the text of the file at *path*. Raise DocumentError if it cannot be a profile."""
    _refuse(path)
    text = documents.read_text(path)
    _refuse_size(len(text), path)
    return text


def read_profile(path: Path) -> Entry:
    """Read the profile at *path*. Return a failure with its problems if it is invalid."""
    table: Table = {}
    try:
        table = documents.parse_toml(read_profile_text(path), source=str(path))
        return LoadedProfile(profile_of(table, str(path)), source=str(path), is_file=True)
    except DocumentError as error:
        return ProfileFailure.of(str(path), _id_in(table), error.problems)


def _refuse(path: Path) -> None:
    try:
        info = path.stat()
    except OSError as error:
        raise DocumentError(str(path), [error.strerror or str(error)]) from error
    if not stat.S_ISREG(info.st_mode):
        raise DocumentError(str(path), ["is not a regular file"])
    _refuse_size(info.st_size, path)


def _refuse_size(size: int, path: Path) -> None:
    if size > LARGEST_PROFILE_BYTES:
        raise DocumentError(str(path), [f"is larger than {LARGEST_PROFILE_BYTES} bytes"])


def _id_in(table: Table) -> str:
    """Return the id of a profile, or "" if it has none."""
    identifier = table.get("id", "")
    return identifier if isinstance(identifier, str) else ""
