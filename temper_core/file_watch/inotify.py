"""inotify(7): a descriptor that becomes readable when a watched directory has changed.

The standard library has no interface to it. Watches belong to inodes, so changes through any mount
of a file system are reported, but not those that another machine makes on a network one.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from enum import IntFlag
from weakref import finalize

from attrs import frozen


class WatchMask(IntFlag):
    """The changes that can be watched (linux/inotify.h)."""

    WRITTEN = 0x0002
    ATTRIBUTES = 0x0004
    MOVED_AWAY = 0x0040
    MOVED_HERE = 0x0080
    MADE = 0x0100
    REMOVED = 0x0200
    ITSELF_REMOVED = 0x0400
    ITSELF_MOVED = 0x0800
    UNMOUNTED = 0x2000
    OVERFLOWN = 0x4000
    ENDED = 0x8000

    NAMES = MADE | REMOVED | MOVED_AWAY | MOVED_HERE
    ITSELF = ITSELF_REMOVED | ITSELF_MOVED


ONLY_DIRECTORIES = 0x01000000
READ_AT_ONCE = 64 * 1024
_HEADER = struct.Struct("iIII")

_library = ctypes.CDLL(None, use_errno=True)


@frozen
class Event:
    """One change: the number of the watch, its kind, and the entry's name in the directory."""

    watch: int
    change: WatchMask
    name: bytes = b""


class Inotify:
    """An inotify descriptor. Raises OSError if the kernel or a limit allows no more.

    It is closed with its object at the latest, because a user has 128 of them by default.
    """

    def __init__(self) -> None:
        descriptor: int = _library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._descriptor = _checked(descriptor, "inotify_init1")
        self._end = finalize(self, os.close, self._descriptor)

    def fileno(self) -> int:
        """Return the descriptor, which is readable while events wait."""
        return self._descriptor

    def watch(self, directory: str, changes: WatchMask) -> int:
        """Watch *directory* for *changes*. Return the number of the watch, one per inode."""
        mask = int(changes) | ONLY_DIRECTORIES
        path = os.fsencode(directory)
        return _checked(
            _library.inotify_add_watch(self._descriptor, path, ctypes.c_uint32(mask)), directory
        )

    def forget(self, watch: int) -> None:
        """End a watch. It is no error if the watch has ended by itself."""
        _library.inotify_rm_watch(self._descriptor, watch)

    def read(self) -> Iterator[Event]:
        """Yield the waiting events. Never waits."""
        while content := self._content():
            yield from _events(content)

    def close(self) -> None:
        """End all watches."""
        self._end()
        self._descriptor = -1

    def _content(self) -> bytes:
        try:
            return os.read(self._descriptor, READ_AT_ONCE)
        except BlockingIOError:
            return b""


def _events(content: bytes) -> Iterator[Event]:
    at = 0
    while at < len(content):
        watch, mask, _, length = _HEADER.unpack_from(content, at)
        at += _HEADER.size
        name = content[at : at + length].rstrip(b"\0")
        at += length
        yield Event(watch, WatchMask(mask & 0xFFFF), name)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result
