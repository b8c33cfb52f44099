"""Listening sockets that forked children do not keep.

A plugin may fork, as ``multiprocessing`` does. Its child outlives an agent that is killed, and with
a listening socket it would hold the address, and take connections without an answer.
"""

import os
import socket
from weakref import WeakSet

_LISTENING: WeakSet[socket.socket] = WeakSet()


def close_in_children(listening: socket.socket) -> socket.socket:
    """Return *listening*. A child that this process forks closes its copy at once."""
    _LISTENING.add(listening)
    return listening


def _close_all() -> None:
    for listening in list(_LISTENING):
        listening.close()


os.register_at_fork(after_in_child=_close_all)
