"""Reports when a path appears, disappears or is replaced, so that no poll is needed meanwhile.

It watches the path's directory and every directory above, which may be moved away. If the path's
directory does not exist yet, the lowest existing one is watched.
"""

import ctypes
import os
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from temper_core.file_watch.inotify import Inotify, WatchMask

FILE_SYSTEMS = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0x01021994,  # tmpfs
        0x858458F6,  # ramfs
        0x794C7630,  # overlayfs
        0xF2F52010,  # f2fs
        0x2FC12FC1,  # zfs
        0xCA451A4E,  # bcachefs
    }
)
"""The magic numbers (linux/magic.h) of file systems that only this kernel changes.

On a network file system, or if another kernel serves the files (9p, virtiofs), inotify reports
only local changes.
"""

SURE_S = 60.0
"""The period of renewing the watches without an event: a mount over a directory, or a changed
link on the way to the path, causes no event."""

_library = ctypes.CDLL(None, use_errno=True)


class PathWatch:
    """Watches for changes of *path*, and with *inside* for changes in the directory *path*.

    ``is_heard`` is true if all changes are reported. If it is false, the caller has to poll. Call
    ``arm`` before every look at the path: changes after it are reported.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        inside: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = str(Path(path).absolute())
        self._inside = inside
        self._clock = clock
        self._sure_until = 0.0
        self._watches: frozenset[int] = frozenset()
        self.is_heard = False
        self._inotify: Inotify | None = None
        with suppress(OSError):
            self._inotify = Inotify()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable after a change, -1 if there is none."""
        return -1 if self._inotify is None else self._inotify.fileno()

    def arm(self) -> None:
        """Drop the waiting events, and renew the watches."""
        if self._inotify is None:
            return
        events = list(self._inotify.read())
        if self.is_heard and not events and self._clock() < self._sure_until:
            return
        self._sure_until = self._clock() + SURE_S
        begun: set[int] = set()
        current = self._watches
        try:
            current = self._listened(self._inotify, begun)
        except OSError:  # a limit on watches, or a directory that this user may not read
            self.is_heard = False
        for watch in (self._watches | begun) - current:
            self._inotify.forget(watch)
        self._watches = current

    def close(self) -> None:
        """End all watches."""
        if self._inotify is not None:
            self._inotify.close()
        self._inotify, self.is_heard = None, False

    def _listened(self, inotify: Inotify, begun: set[int]) -> frozenset[int]:
        """Watch the existing directories on the way, and repeat if more were made meanwhile.

        The numbers of new watches are added to *begun*, even if an error follows.
        """
        places: list[str] = []
        watches: list[int] = []
        while (directories := _existing(self._path, inside=self._inside)) != places:
            places, watches = directories, []
            for place in places:
                more = WatchMask.NAMES | WatchMask.WRITTEN if place == places[-1] else WatchMask(0)
                watches.append(inotify.watch(place, WatchMask.ITSELF | more))
                begun.add(watches[-1])
        self.is_heard = _is_ours(places[-1])
        return frozenset(watches)


def _existing(path: str, *, inside: bool) -> list[str]:
    """Return the directories on the way to *path* that exist, from the root on."""
    ways = [str(parent) for parent in reversed(Path(path).parents)]
    return list(takewhile(os.path.isdir, [*ways, path] if inside else ways))


def _is_ours(directory: str) -> bool:
    facts = ctypes.create_string_buffer(256)
    if _library.statfs(os.fsencode(directory), facts) != 0:
        return False
    return (ctypes.c_long.from_buffer(facts).value & 0xFFFFFFFF) in FILE_SYSTEMS
