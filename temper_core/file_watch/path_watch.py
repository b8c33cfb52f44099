"""Hears when a path begins or ceases to exist, or becomes another: no poll is needed meanwhile.

Watched are the directory that holds it, and every directory above, which may be moved away. Where
the path's own directory does not exist yet, it is the one that does which is listened to.
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
"""The magic numbers (linux/magic.h) of file systems that nobody changes behind this kernel's back.

On a network file system, and where another kernel serves the files (9p, virtiofs), inotify tells
only of what was changed here.
"""

SURE_S = 60.0
"""After so long the way to the path is gone over again, though nothing was heard: what is mounted
over a directory, or where a link on the way leads to by now, makes no sound."""

_library = ctypes.CDLL(None, use_errno=True)


class PathWatch:
    """Listens for changes of *path*. With *inside* also for those in the directory that it is.

    ``is_heard`` tells whether all changes will be heard. Where not, only looking helps. Listening
    begins with ``arm``, which is to be called before every look: what changes after it, is heard.
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
        """Return the descriptor that becomes readable after a change; -1 where there is none."""
        return -1 if self._inotify is None else self._inotify.fileno()

    def arm(self) -> None:
        """Forget what was heard, and listen wherever it has to be listened by now."""
        if self._inotify is None:
            return
        heard = list(self._inotify.read())
        if self.is_heard and not heard and self._clock() < self._sure_until:
            return
        self._sure_until = self._clock() + SURE_S
        begun: set[int] = set()
        kept = self._watches
        try:
            kept = self._listened(self._inotify, begun)
        except OSError:  # a limit on watches, or a directory that this user may not read
            self.is_heard = False
        for watch in (self._watches | begun) - kept:
            self._inotify.forget(watch)
        self._watches = kept

    def close(self) -> None:
        """Listen no more."""
        if self._inotify is not None:
            self._inotify.close()
        self._inotify, self.is_heard = None, False

    def _listened(self, inotify: Inotify, begun: set[int]) -> frozenset[int]:
        """Watch what there is on the way, again where more of it was made meanwhile.

        Whatever was *begun* is told there, also where an error ends it.
        """
        places: list[str] = []
        watches: list[int] = []
        while (found := _existing(self._path, inside=self._inside)) != places:
            places, watches = found, []
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
