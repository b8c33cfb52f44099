"""The files that Temper may have left on this host, its pin among them, and their removal.

Only names that Temper itself gives are removed, one by one, through a descriptor of their
directory: a link is unlinked and never followed, and a directory that is a link is left alone.
Whatever else lies beside them is somebody else's: it is named, and stays.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import evolve, frozen

from temper_core.directory_tree import open_directory
from temper_core.events.event_file import FILE_NAME
from temper_core.records.restored import Leftover, Restored
from temper_core.restoring.instrument_directories import INSTRUMENTS, clear_instruments
from temper_core.restoring.reasons import failure, named_strangers
from temper_core.scheduler.engine.leftovers import PATTERNS
from temper_core.scheduler.host.agent_lock import LOCK_FILE
from temper_core.scheduler.host.roots import Roots
from temper_core.settings.models import Settings

OWN_DIRECTORY = "temper"
"""A directory of this name is Temper's own: strangers in it are told, and it goes when empty."""
NO_SOCKET = "is no socket, so Temper has not made it"
SWITCH_STAYS = "the operator's own switch for safe mode; --all removes it"


@frozen
class FilePlace:
    """A directory in which Temper keeps files: ``names`` are regular expressions of what may go.

    Of ``sockets`` only what is a socket may go, or a link. ``is_own`` says whether the directory is
    Temper's, so that it goes as well once it is empty. A pin is only looked for on a BPF file
    system. With ``has_instruments`` the state directories of instruments are below it.
    """

    directory: Path
    names: tuple[str, ...]
    is_own: bool = False
    is_pin: bool = False
    sockets: frozenset[str] = frozenset()
    has_instruments: bool = False


@frozen
class Sparing:
    """What stays although it is known: files in use, the operator's switch, others' directories."""

    in_use: frozenset[str] = frozenset()
    switch: str = ""
    directories: frozenset[Path] = frozenset()

    def why(self, path: str) -> str | None:
        """Return why *path* stays, empty for what need not be told; None where it may go."""
        if path in self.in_use:
            return ""
        return SWITCH_STAYS if path == self.switch else None


def places(settings: Settings, roots: Roots) -> tuple[FilePlace, ...]:
    """Return where Temper keeps files, as the settings have it."""
    switch, state = Path(settings.safe_mode.file), Path(settings.safe_mode.state)
    pin = Path(settings.scheduler.steering_pin)
    # A number takes the place of each star: nobody else's engine-notes.json goes.
    notes = tuple(re.escape(pattern).replace(r"\*", "[0-9]+") for pattern in PATTERNS)
    found = [
        _place(roots.run, notes),
        _place(roots.node, (re.escape(LOCK_FILE),)),
        FilePlace(pin.parent, (re.escape(pin.name),), is_own=True, is_pin=True),
    ]
    if _is_definite(state):
        kept = (state.name, f"{state.name}.new", FILE_NAME, f"{FILE_NAME}.new")
        known = _place(state.parent, tuple(map(re.escape, kept)))
        found.append(evolve(known, has_instruments=True))
    if _is_definite(switch):
        name = re.escape(switch.name)
        found.append(_place(switch.parent, (name, rf"{name}\.[0-9]+")))
    socket = Path(settings.server.socket)
    if _is_definite(socket):
        name = re.escape(socket.name)
        found.append(evolve(_place(socket.parent, (name,)), sockets=frozenset({socket.name})))
    return _merged(found)


def _is_definite(path: Path) -> bool:
    """Whether a path means the same file wherever one is, and a file at all."""
    return path.is_absolute() and bool(path.name)


def _indefinite(settings: Settings) -> Iterator[Leftover]:
    """Name the settings by which a file cannot be found: the agent had another directory."""
    named = {
        "[safe_mode] state": settings.safe_mode.state,
        "[safe_mode] file": settings.safe_mode.file,
        "[server] socket": settings.server.socket,
    }
    for key, value in named.items():
        if value and not _is_definite(Path(value)):
            yield Leftover(
                f"{key} = {value!r}", "is no absolute path of a file; look for it yourself"
            )


def agents_files(settings: Settings, roots: Roots) -> frozenset[str]:
    """Return the files that an agent needs for as long as it runs."""
    socket = settings.server.socket
    return frozenset((str(roots.node / LOCK_FILE), *((str(Path(socket)),) if socket else ())))


def restore_files(
    settings: Settings, roots: Roots, sparing: Sparing, *, is_dry: bool = False
) -> Restored:
    """Remove what Temper left here, and say what. With *is_dry* only say it. Never raises."""
    found = [each for each in places(settings, roots) if each.directory not in sparing.directories]
    done = [_clear(place, sparing, is_dry=is_dry) for place in found]
    return Restored(
        tuple(path for each in done for path in each.removed),
        (*(left for each in done for left in each.left), *_indefinite(settings)),
    )


def _place(directory: Path, names: Sequence[str]) -> FilePlace:
    return FilePlace(directory, tuple(names), is_own=directory.name == OWN_DIRECTORY)


def _merged(found: Sequence[FilePlace]) -> tuple[FilePlace, ...]:
    """Join the places that are one directory: what one knows is no stranger to the other."""
    joined: dict[Path, FilePlace] = {}
    for place in found:
        known = joined.get(place.directory, FilePlace(place.directory, ()))
        names, sockets = (*known.names, *place.names), known.sockets | place.sockets
        has_instruments = known.has_instruments or place.has_instruments
        joined[place.directory] = evolve(
            place, names=names, sockets=sockets, has_instruments=has_instruments
        )
    return tuple(joined.values())


def _clear(place: FilePlace, sparing: Sparing, *, is_dry: bool) -> Restored:
    """Remove what has a known name in the place, and the place itself if it is then empty."""
    try:
        with _opened(place.directory) as descriptor:
            if place.is_pin and not _is_bpf(descriptor):
                return Restored()  # nothing can be pinned there; whatever it is, it is not ours
            removed, left = _clear_all(place, descriptor, sparing, is_dry=is_dry)
    except (FileNotFoundError, NotADirectoryError):
        return Restored(left=_of_no_directory(place))
    except OSError as error:
        # A directory that is a link ends here as well: ELOOP.
        return Restored(left=_of_no_directory(place) or (failure(str(place.directory), error),))
    if place.is_own and not left:
        return Restored((*removed, *_remove_directory(place.directory, is_dry=is_dry)))
    return Restored(removed, tuple(each for each in left if each.why))


def _of_no_directory(place: FilePlace) -> tuple[Leftover, ...]:
    if not place.directory.is_symlink():
        return ()
    why = f"is a link to {place.directory.readlink()}, and not followed; look there yourself"
    return (Leftover(str(place.directory), why),)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = open_directory(directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _clear_all(
    place: FilePlace, descriptor: int, sparing: Sparing, *, is_dry: bool
) -> tuple[tuple[str, ...], tuple[Leftover, ...]]:
    names = set(os.listdir(descriptor))
    if not place.has_instruments or INSTRUMENTS not in names:
        return _clear_names(place, descriptor, names, sparing, is_dry=is_dry)
    removed, left = clear_instruments(descriptor, place.directory, is_dry=is_dry)
    if left and not place.is_own:
        # A directory of somebody else's may have folders of that name: they are not told of.
        left = tuple(each for each in left if each.is_failure)
    others = _clear_names(place, descriptor, names - {INSTRUMENTS}, sparing, is_dry=is_dry)
    return (*removed, *others[0]), (*left, *others[1])


def _clear_names(
    place: FilePlace, descriptor: int, found: Iterable[str], sparing: Sparing, *, is_dry: bool
) -> tuple[tuple[str, ...], tuple[Leftover, ...]]:
    removed: list[str] = []
    left: list[Leftover] = []
    names = sorted(found)
    ours = [name for name in names if any(re.fullmatch(each, name) for each in place.names)]
    for name in ours:
        path = str(place.directory / name)
        if (why := sparing.why(path)) is not None:
            left.append(Leftover(path, why, is_kept=True))
        elif name in place.sockets and not _is_socket(name, descriptor):
            left.append(Leftover(path, NO_SOCKET))
        elif problem := _unlink(name, descriptor, is_dry=is_dry):
            left.append(failure(path, problem))
        else:
            removed.append(path)
    strangers = sorted(set(names) - set(ours)) if place.is_own else []
    return tuple(removed), (*left, *named_strangers(strangers, place.directory))


def _is_socket(name: str, directory: int) -> bool:
    """Whether it is one. So counts what has just gone, and a link, which can be taken away."""
    with suppress(OSError):
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        return stat.S_ISSOCK(mode) or stat.S_ISLNK(mode)
    return True


def _unlink(name: str, directory: int, *, is_dry: bool) -> OSError | None:
    """Remove one entry that is no directory. Links are unlinked, not followed."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return IsADirectoryError("is a directory, and Temper makes none of that name")
        if not is_dry:
            os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        return error
    return None


def _remove_directory(directory: Path, *, is_dry: bool) -> tuple[str, ...]:
    if is_dry:
        return (str(directory),)
    with suppress(OSError):  # a mount of a container's, or somebody has just put something in it
        directory.rmdir()
        return (str(directory),)
    return ()


def _is_bpf(descriptor: int) -> bool:
    """Whether an open directory is on a BPF file system, by the mount table (proc(5))."""
    device = os.fstat(descriptor).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            left, _, right = line.partition(" - ")
            if left.split()[2] == wanted and right.startswith("bpf "):
                return True
    return False
