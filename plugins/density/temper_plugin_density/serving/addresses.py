"""Where a server listens."""

import re
import socket

from attrs import frozen

from temper_core import InputError, MachineError

LARGEST_PORT = 65_535
BACKLOG = 1024


@frozen
class Address:
    """A host, by name or address, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, option: str = "--listen") -> "Address":
        """Read ``host:port`` or ``[IPv6]:port``; raise InputError, which names the *option*."""
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        is_port = re.fullmatch("[0-9]{1,5}", port) and int(port) <= LARGEST_PORT
        if not (colon and bare and is_port) or (":" in bare and bare == host):
            raise InputError(
                f"{option}: must be an address and a port such as '0.0.0.0:8443', not {text!r}"
            )
        return cls(bare, int(port))

    def listen(self) -> socket.socket:
        """Return a socket that listens there; raise MachineError where that is not possible."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listening = socket.create_server((self.host, self.port), family=family, backlog=BACKLOG)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise MachineError(f"cannot listen on {self.host}:{self.port}: {reason}") from error
        # asyncio would set it, but not on what a socket of create_server accepts: a peer that
        # acknowledges late has the second half of every answer 40 ms later.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setblocking(False)
        return listening
