"""Listening sockets and locked files that forked children do not keep.

A plugin may fork, as ``multiprocessing`` does. Its child outlives an agent that is killed, and with
a listening socket it would hold the address, and take connections without an answer. With a locked
file it would hold the lock, and keep the next agent from starting.
"""

import os
from typing import Protocol, TypeVar
from weakref import WeakSet


class Closeable(Protocol):
    """A socket or a file."""

    def close(self) -> None:
        """Close it. The call must not raise, so that the others are closed, too."""
        ...


_Kept = TypeVar("_Kept", bound=Closeable)
_OPEN: WeakSet[Closeable] = WeakSet()


def close_in_children(opened: _Kept) -> _Kept:
    """Return *opened*. A child that this process forks closes its copy at once."""
    _OPEN.add(opened)
    return opened


def _close_all() -> None:
    for opened in list(_OPEN):
        opened.close()


os.register_at_fork(after_in_child=_close_all)
