"""Listening TCP sockets, bound before a server starts so that a failure is one line."""

import errno
import socket
from contextlib import ExitStack

from temper_core.errors import MachineError
from temper_core.forked_children import close_in_children
from temper_core.http.address import Address

BACKLOG = 1024


class AddressInUseError(MachineError):
    """Another process listens on the address."""


def listen_on(address: Address, named: str, *, rivals: str = "") -> socket.socket:
    """Listen on *address*. ``::`` includes every IPv4 address.

    Raises AddressInUseError if another process listens there, with the *rivals* that usually use
    the port, and MachineError for any other failure. Both have the setting or option *named*.
    """
    try:
        return _bound(address)
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise AddressInUseError(_occupied(address, named, rivals)) from error
        reason = getattr(error, "strerror", None) or error
        raise MachineError(f"cannot listen on {address}: {reason}; see {named}") from error


def _bound(address: Address) -> socket.socket:
    # As bytes, because socket otherwise imports its IDNA tables of 200 kB.
    host = address.host.encode() if address.host.isascii() else address.host
    family, kind, protocol, _, endpoint = socket.getaddrinfo(
        host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with ExitStack() as undo:
        bound = undo.enter_context(socket.socket(family, kind, protocol))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it. Without it, a peer with delayed acknowledgements gets the
        # second half of every answer 40 ms later.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:  # independent of the host's default
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(endpoint)
        bound.listen(BACKLOG)
        undo.pop_all()
    return close_in_children(bound)


def _occupied(address: Address, named: str, rivals: str) -> str:
    occupant = f"another process does ({rivals})" if rivals else "another process does"
    return f"cannot listen on {address}: {occupant}; set {named} to a free port"
