"""Sockets that listen on TCP, bound before a server starts so that a failure is one line."""

import errno
import socket
from contextlib import ExitStack

from temper_core.errors import MachineError
from temper_core.http.address import Address

BACKLOG = 1024


def listen_on(address: Address, named: str, *, rivals: str = "") -> socket.socket:
    """Listen on *address*, where ``::`` is every address of IPv4 too.

    Raises MachineError where that cannot be, with the setting or option by which the address is
    *named*, and with the *rivals* that usually have its port.
    """
    try:
        return _bound(address)
    except (OSError, UnicodeError) as error:
        raise MachineError(_refusal(address, error, named, rivals)) from error


def _bound(address: Address) -> socket.socket:
    # As bytes, or socket imports its tables of international names, which are 200 kB.
    host = address.host.encode() if address.host.isascii() else address.host
    family, kind, protocol, _, where = socket.getaddrinfo(
        host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with ExitStack() as undo:
        bound = undo.enter_context(socket.socket(family, kind, protocol))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # What is accepted inherits it. Without, a peer that acknowledges late has the second half
        # of every answer 40 ms later.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:  # whatever the host has as its default
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(where)
        bound.listen(BACKLOG)
        undo.pop_all()
    return bound


def _refusal(address: Address, error: OSError | UnicodeError, named: str, rivals: str) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        who = f"another process does ({rivals})" if rivals else "another process does"
        return f"cannot listen on {address}: {who}; set {named} to a free port"
    reason = getattr(error, "strerror", None) or error
    return f"cannot listen on {address}: {reason}; see {named}"
