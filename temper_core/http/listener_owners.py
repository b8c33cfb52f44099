"""The users whose processes listen where a TCP connection to an address of this namespace goes."""

import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from temper_core.kernel_text import kernel_lines

NET = Path("/proc/self/net")
_LISTEN = "0A"
"""TCP_LISTEN of include/net/tcp_states.h, as proc_net_tcp(5) shows it."""
_TABLES = ("tcp", "tcp6")
IPV4_BYTES = 4
_MAPPED = bytes(10) + b"\xff\xff"
"""Begins an IPv4 address in IPv6 (RFC 4291, 2.5.5.2)."""


@frozen
class _Listener:
    """One row: its table, its local address as the kernel writes it, and its user's id."""

    table: str
    address: str
    owner: int


def listener_owners(port: int, host: str = "", net: Path = NET) -> frozenset[int]:
    """Return the user ids of the sockets that may accept a connection to *host* and *port*.

    The kernel prefers the socket of that very address to one of all addresses. If *host* is no
    numeric address, or that of all addresses, every listener on *port* counts.

    The ids are those of the user namespace of this process. The result is empty if no socket
    listens. Raises OSError if the kernel's tables cannot be read.
    """
    listeners = [found for table in _TABLES for found in _listeners(net / table, port)]
    places = _places(host)
    if places is None:
        return frozenset(found.owner for found in listeners)
    for place in places:
        if owners := {found.owner for found in listeners if (found.table, found.address) == place}:
            return frozenset(owners)
    return frozenset()


def _places(host: str) -> Sequence[tuple[str, str]] | None:
    """Return the rows that accept connections to *host*, as table and address, best first."""
    address = _packed(host)
    if address is None or not any(address):
        return None
    address = address.removeprefix(_MAPPED) if len(address) > IPV4_BYTES else address
    if len(address) > IPV4_BYTES:
        return [("tcp6", _written(address)), ("tcp6", _written(bytes(16)))]
    return [
        ("tcp", _written(address)),
        ("tcp", _written(bytes(IPV4_BYTES))),
        ("tcp6", _written(_MAPPED + address)),
        ("tcp6", _written(bytes(16))),
    ]


def _packed(host: str) -> bytes | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.inet_pton(family, host)
    except OSError:
        return None


def _written(address: bytes) -> str:
    """Return *address* in words of this machine's byte order: ``get_tcp6_sock`` prints it so."""
    return "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", address))


def _listeners(table: Path, port: int) -> Iterator[_Listener]:
    """Yield the rows of one table: ``tcp4_seq_show`` of net/ipv4/tcp_ipv4.c has its columns."""
    try:
        lines = kernel_lines(table.read_text(encoding="ascii"))[1:]
    except FileNotFoundError:  # the kernel has no IPv6
        return
    for line in lines:
        _, local, _, state, _, _, _, uid, *_ = line.split()
        address, _, number = local.rpartition(":")
        if state == _LISTEN and int(number, 16) == port:
            yield _Listener(table.name, address, int(uid))
