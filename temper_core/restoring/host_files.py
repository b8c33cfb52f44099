"""The files that Temper may have left on this host, its pin among them, and their removal.

Only files with Temper's names are removed, one by one, through a descriptor of their directory. A
link is unlinked and never followed, and a directory that is a link is left alone. Any other file
beside them is not Temper's: it is named, and stays.
"""

import fcntl
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import evolve, frozen

from temper_core.directory_tree import open_directory
from temper_core.events.event_file import FILE_NAME
from temper_core.kernel_text import kernel_lines, read_kernel_text
from temper_core.records.restored import Leftover, Restored
from temper_core.restoring.device_values import Plugins, installed_plugins
from temper_core.restoring.instrument_directories import INSTRUMENTS, clear_instruments
from temper_core.restoring.reasons import failure, named_strangers
from temper_core.scheduler.engine_process.leftovers import PATTERNS
from temper_core.scheduler.host.agent_lock import LOCK_FILE
from temper_core.scheduler.host.roots import Roots
from temper_core.settings.models import Settings
from temper_core.steering.nice_record import FILE_NAME as NICE_RECORD

OWN_DIRECTORY = "temper"
"""A directory of this name is Temper's own: strangers in it are named, and it is removed empty."""
NO_SOCKET = "is not a socket, so it is not Temper's"
HELD_LOCK = "a process holds this lock"
PLUGIN_LOCKS = rf"(?!{re.escape(LOCK_FILE)})[a-z][a-z0-9_]{{0,31}}\.lock"
"""The locks that plugins hold across the agents of a host."""
SWITCH_STAYS = "the operator's own switch for safe mode; --all removes it"


@frozen
class FilePlace:
    """A directory of Temper's files. ``names`` are regular expressions of the removable ones.

    An entry of ``sockets`` is removed only if it is a socket or a link. ``is_own`` means that the
    directory is Temper's and is removed too once it is empty. ``is_pin`` means that it counts only
    on a BPF file system. With ``has_instruments`` the instruments' state directories are below it.
    """

    directory: Path
    names: tuple[str, ...]
    is_own: bool = False
    is_pin: bool = False
    sockets: frozenset[str] = frozenset()
    has_instruments: bool = False


@frozen
class Sparing:
    """Known files that stay: those in use, the operator's switch, and other agents' directories."""

    in_use: frozenset[str] = frozenset()
    switch: str = ""
    directories: frozenset[Path] = frozenset()

    def why(self, path: str) -> str | None:
        """Return why *path* stays, empty if that is not reported, None if it may be removed."""
        if path in self.in_use:
            return ""
        return SWITCH_STAYS if path == self.switch else None


def places(settings: Settings, roots: Roots) -> tuple[FilePlace, ...]:
    """Return the directories of Temper's files by the settings."""
    switch, state = Path(settings.safe_mode.file), Path(settings.safe_mode.state)
    pin = Path(settings.scheduler.steering_pin)
    # Each star stands for a number, so that a foreign engine-notes.json stays.
    notes = tuple(re.escape(pattern).replace(r"\*", "[0-9]+") for pattern in PATTERNS)
    file_places = [
        _place(roots.run, (*notes, *_names_of_record())),
        _place(roots.node, (re.escape(LOCK_FILE), PLUGIN_LOCKS)),
        FilePlace(pin.parent, (re.escape(pin.name),), is_own=True, is_pin=True),
    ]
    names = (state.name, f"{state.name}.new", FILE_NAME, f"{FILE_NAME}.new")
    state_place = _place(state.parent, tuple(map(re.escape, names)))
    file_places.append(evolve(state_place, has_instruments=True))
    name = re.escape(switch.name)
    file_places.append(_place(switch.parent, (name, rf"{name}\.[0-9]+")))
    if settings.server.socket:
        socket = Path(settings.server.socket)
        name = re.escape(socket.name)
        file_places.append(evolve(_place(socket.parent, (name,)), sockets=frozenset({socket.name})))
    return _merged(file_places)


def _names_of_record() -> tuple[str, ...]:
    return re.escape(NICE_RECORD), re.escape(f"{NICE_RECORD}.new")


def agents_files(settings: Settings, roots: Roots) -> frozenset[str]:
    """Return the files that an agent needs while it runs."""
    socket = settings.server.socket
    return frozenset((str(roots.node / LOCK_FILE), *((str(Path(socket)),) if socket else ())))


def restore_files(
    settings: Settings,
    roots: Roots,
    sparing: Sparing,
    *,
    is_dry: bool = False,
    plugins: Plugins | None = None,
) -> Restored:
    """Remove Temper's files and report them. With *is_dry* only report them. Never raises.

    *plugins* reach the devices whose values are given back first. They are the installed ones by
    default.
    """
    plugins = plugins or installed_plugins(settings)
    results = [
        _clear(place, sparing, plugins, is_dry=is_dry)
        for place in places(settings, roots)
        if place.directory not in sparing.directories
    ]
    return Restored(
        tuple(path for result in results for path in result.removed),
        tuple(leftover for result in results for leftover in result.left),
    )


def _place(directory: Path, names: Sequence[str]) -> FilePlace:
    return FilePlace(directory, tuple(names), is_own=directory.name == OWN_DIRECTORY)


def _merged(file_places: Sequence[FilePlace]) -> tuple[FilePlace, ...]:
    """Join the places of one directory, so that the files of one are no strangers to the other."""
    joined: dict[Path, FilePlace] = {}
    for place in file_places:
        previous = joined.get(place.directory, FilePlace(place.directory, ()))
        names, sockets = (*previous.names, *place.names), previous.sockets | place.sockets
        has_instruments = previous.has_instruments or place.has_instruments
        joined[place.directory] = evolve(
            place, names=names, sockets=sockets, has_instruments=has_instruments
        )
    return tuple(joined.values())


def _clear(place: FilePlace, sparing: Sparing, plugins: Plugins, *, is_dry: bool) -> Restored:
    """Remove the known files of a place, and the directory itself if it is ours and then empty."""
    try:
        with _opened(place.directory) as descriptor:
            if place.is_pin and not _is_bpf(descriptor):
                return Restored()  # no map can be pinned there, so the entry is not ours
            removed, leftovers = _clear_all(place, descriptor, sparing, plugins, is_dry=is_dry)
    except (FileNotFoundError, NotADirectoryError):
        return Restored(left=_of_no_directory(place))
    except OSError as error:
        # A directory that is a link gets here too (ELOOP).
        return Restored(left=_of_no_directory(place) or (failure(str(place.directory), error),))
    if place.is_own and not leftovers:
        return Restored((*removed, *_remove_directory(place.directory, is_dry=is_dry)))
    return Restored(removed, tuple(leftover for leftover in leftovers if leftover.why))


def _of_no_directory(place: FilePlace) -> tuple[Leftover, ...]:
    if not place.directory.is_symlink():
        return ()
    reason = f"is a link to {place.directory.readlink()}, and not followed; look there yourself"
    return (Leftover(str(place.directory), reason),)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = open_directory(directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _clear_all(
    place: FilePlace, descriptor: int, sparing: Sparing, plugins: Plugins, *, is_dry: bool
) -> tuple[tuple[str, ...], tuple[Leftover, ...]]:
    names = set(os.listdir(descriptor))
    if not place.has_instruments or INSTRUMENTS not in names:
        return _clear_names(place, descriptor, names, sparing, is_dry=is_dry)
    removed, leftovers = clear_instruments(descriptor, place.directory, plugins, is_dry=is_dry)
    if leftovers and not place.is_own:
        # A foreign directory may have folders of that name, which are not reported.
        leftovers = tuple(leftover for leftover in leftovers if leftover.is_failure)
    files = _clear_names(place, descriptor, names - {INSTRUMENTS}, sparing, is_dry=is_dry)
    return (*removed, *files[0]), (*leftovers, *files[1])


def _clear_names(
    place: FilePlace, descriptor: int, entries: Iterable[str], sparing: Sparing, *, is_dry: bool
) -> tuple[tuple[str, ...], tuple[Leftover, ...]]:
    removed: list[str] = []
    leftovers: list[Leftover] = []
    names = sorted(entries)
    ours = [name for name in names if any(re.fullmatch(pattern, name) for pattern in place.names)]
    for name in ours:
        path = str(place.directory / name)
        if (reason := sparing.why(path)) is not None:
            leftovers.append(Leftover(path, reason, is_kept=True))
        elif name in place.sockets and not _is_socket(name, descriptor):
            leftovers.append(Leftover(path, NO_SOCKET))
        elif _is_held(name, descriptor):
            leftovers.append(Leftover(path, HELD_LOCK, is_kept=True))
        elif problem := _unlink(name, descriptor, is_dry=is_dry):
            leftovers.append(failure(path, problem))
        else:
            removed.append(path)
    strangers = sorted(set(names) - set(ours)) if place.is_own else []
    return tuple(removed), (*leftovers, *named_strangers(strangers, place.directory))


def _is_socket(name: str, directory: int) -> bool:
    """Whether an entry is a socket. A link and a vanished entry count as sockets too."""
    with suppress(OSError):
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        return stat.S_ISSOCK(mode) or stat.S_ISLNK(mode)
    return True


def _is_held(name: str, directory: int) -> bool:
    """Whether an entry is a plugin's lock (flock(2)) that a process holds."""
    if not re.fullmatch(PLUGIN_LOCKS, name):
        return False
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=directory)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _unlink(name: str, directory: int, *, is_dry: bool) -> OSError | None:
    """Remove one entry unless it is a directory. Links are unlinked, not followed."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            return IsADirectoryError("is a directory, but Temper makes no directory of that name")
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
    with suppress(OSError):  # it is a container's mount, or has just got a new file
        directory.rmdir()
        return (str(directory),)
    return ()


def _is_bpf(descriptor: int) -> bool:
    """Whether an open directory is on a BPF file system, by the mount table (proc(5))."""
    device = os.fstat(descriptor).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):
        for line in kernel_lines(read_kernel_text(Path("/proc/self/mountinfo"))):
            mount, _, file_system = line.partition(" - ")
            if mount.split(" ")[2] == number and file_system.startswith("bpf "):
                return True
    return False
