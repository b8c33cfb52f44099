"""Watches a cgroup hierarchy for changes, so that pollers need not scan it.

Cgroup file systems report to inotify when directories come and go and when values are written
(checked on Linux 6.18, for v1 and v2). The end of a cgroup's last process is reported only if its
``cgroup.events`` was read before. A watch does not end with its cgroup.
"""

import math
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from attrs import field, frozen

from temper_core.file_watch.inotify import Event, Inotify, WatchMask

TELLING = frozenset(
    {
        b"cgroup.events",
        b"cpu.cfs_period_us",
        b"cpu.cfs_quota_us",
        b"cpu.max",
        b"cpu.shares",
        b"cpu.weight",
        b"cpu.weight.nice",
    }
)
"""The files whose change concerns a pod. Other files are written all the time."""
JOINING = frozenset({b"cgroup.procs", b"tasks"})
"""The files that are written when a process is moved. The main process may have changed then."""
SHAPE = WatchMask.NAMES | WatchMask.ITSELF | WatchMask.UNMOUNTED | WatchMask.OVERFLOWN
WANTED = WatchMask.NAMES | WatchMask.ITSELF | WatchMask.WRITTEN | WatchMask.ATTRIBUTES
RETRY_S = 300.0
"""Seconds until the next attempt after a limit was reached. Other programs may have freed some."""


@frozen
class TreeNews:
    """The changes: the tree's shape, and the paths whose values or processes changed."""

    shape: bool = False
    values: frozenset[str] = field(factory=frozenset)
    processes: frozenset[str] = field(factory=frozenset)

    def __bool__(self) -> bool:
        return self.shape or bool(self.values)


class _Place(NamedTuple):
    """A watched directory, and the caller's path for it."""

    directory: str
    path: str

    @property
    def is_there(self) -> bool:
        return Path(self.directory).is_dir()


class TreeWatch:
    """Watches the directories that are added. A path is the caller's own name of a directory.

    ``is_complete`` is false once a directory could not be watched. Then all watches are released
    for other programs, and the caller has to scan. ``take`` tries again every ``RETRY_S``.
    """

    def __init__(
        self,
        listen: Callable[[], Inotify] = Inotify,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listen = listen
        self._clock = clock
        self._inotify: Inotify | None = None
        self._places: dict[int, _Place] = {}
        self._watches: dict[str, int] = {}
        self._unheard: dict[str, _Place] = {}
        self._retry_at = 0.0
        self._try_again()

    @property
    def is_complete(self) -> bool:
        """Whether every directory is watched."""
        return self._inotify is not None

    def fileno(self) -> int:
        """Return the descriptor that becomes readable after a change, or -1 without one."""
        return -1 if self._inotify is None else self._inotify.fileno()

    def add(self, directory: str, path: str) -> None:
        """Watch *directory*, called *path*. A directory that has gone is no error."""
        self._add(_Place(directory, path))

    def remove(self, directory: str) -> None:
        """Stop watching *directory*, which has gone. It need not have been watched."""
        self._unheard.pop(directory, None)
        if (watch := self._watches.pop(directory, None)) is not None:
            self._end(watch)

    def take(self) -> TreeNews:
        """Return the changes since the last call."""
        if self._inotify is None:
            return self._try_again()
        events = list(self._inotify.read())
        if any(event.change & WatchMask.OVERFLOWN for event in events):
            before, self._places = self._places, {}
            return self._begin_again(before.values())
        news = TreeNews(
            any(event.change & SHAPE for event in events),
            frozenset(self._named(events, TELLING)),
            frozenset(self._named(events, JOINING)),
        )
        for event in events:
            if event.change & WatchMask.ENDED:
                self._places.pop(event.watch, None)
        return news

    def close(self) -> None:
        """Release all watches for good."""
        self._give_up()
        self._unheard.clear()
        self._retry_at = math.inf

    def _add(self, place: _Place) -> None:
        if self._inotify is None:
            self._unheard[place.directory] = place
            return
        try:
            watch = self._inotify.watch(place.directory, WANTED)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:  # the limit on watches
            self._give_up()
            self._unheard[place.directory] = place
            return
        before = self._watches.get(place.directory, watch)
        if before != watch:  # the directory was recreated under its old name
            self._end(before)
        self._watches[place.directory] = watch
        self._places[watch] = place

    def _end(self, watch: int) -> None:
        self._places.pop(watch, None)
        if self._inotify is not None:
            self._inotify.forget(watch)

    def _begin_again(self, places: Collection[_Place]) -> TreeNews:
        """Watch the *places* that still exist, and report all of them as changed."""
        for place in places:
            self._add(place)
        paths = frozenset(place.path for place in places)
        return TreeNews(shape=True, values=paths, processes=paths)

    def _give_up(self) -> None:
        """Release all watches, and remember their directories."""
        if self._inotify is not None:
            self._inotify.close()
        self._inotify = None
        self._unheard |= {place.directory: place for place in self._places.values()}
        self._places.clear()
        self._watches.clear()
        self._retry_at = self._clock() + RETRY_S

    def _try_again(self) -> TreeNews:
        if self._clock() < self._retry_at:
            return TreeNews(shape=True)
        self._retry_at = self._clock() + RETRY_S
        unheard, self._unheard = self._unheard, {}
        with suppress(OSError):  # the limit on descriptors of this kind
            self._inotify = self._listen()
        return self._begin_again([place for place in unheard.values() if place.is_there])

    def _named(self, events: list[Event], names: frozenset[bytes]) -> Iterator[str]:
        for event in events:
            is_note = bool(event.change & WatchMask.ATTRIBUTES) and not event.name
            place = self._places.get(event.watch)
            if place is not None and (event.name in names or (is_note and names is TELLING)):
                yield place.path
