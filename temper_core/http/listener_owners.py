"""The users whose processes listen on a TCP port of this network namespace."""

from collections.abc import Iterator
from pathlib import Path

from temper_core.kernel_text import kernel_lines

NET = Path("/proc/self/net")
_LISTEN = "0A"
"""TCP_LISTEN of include/net/tcp_states.h, as proc_net_tcp(5) shows it."""


def listener_owners(port: int, net: Path = NET) -> frozenset[int]:
    """Return the user ids of all sockets that listen on *port*, on any address.

    The ids are those of the user namespace of this process. The result is empty if no socket
    listens. Raises OSError if the kernel's tables cannot be read.
    """
    return frozenset(owner for table in ("tcp", "tcp6") for owner in _owners(net / table, port))


def _owners(table: Path, port: int) -> Iterator[int]:
    """Yield the user ids of one table: ``tcp4_seq_show`` of net/ipv4/tcp_ipv4.c has its columns."""
    try:
        lines = kernel_lines(table.read_text(encoding="ascii"))[1:]
    except FileNotFoundError:  # the kernel has no IPv6
        return
    for line in lines:
        _, local, _, state, _, _, _, uid, *_ = line.split()
        if state == _LISTEN and int(local.rpartition(":")[2], 16) == port:
            yield int(uid)
