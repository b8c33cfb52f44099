"""An address and a port, in the notation of settings and options."""

import re

from attrs import frozen

from temper_core.errors import InputError

HIGHEST_PORT = 65_535
_WRITTEN = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[\w.-]+)):(?P<port>\d{1,5})", re.ASCII
)
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not bound to


@frozen
class Address:
    """A host, without brackets, and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def reachable(self) -> "Address":
        """The address to connect to: loopback if this one means all addresses."""
        return Address(_EVERYWHERE.get(self.host, self.host), self.port)


def parse_address(text: str, named: str, *, or_else: str = "") -> Address:
    """Read the setting or option *named* by ``read_address``. InputError begins with the name."""
    try:
        return read_address(text, or_else=or_else)
    except InputError as error:
        raise InputError(f"{named}: {error}") from error


def read_address(text: str, *, or_else: str = "") -> Address:
    """Read ``host:port`` or ``[IPv6]:port``.

    Raises InputError for any other text. The message has *or_else*, the allowed values besides an
    address.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None or int(match["port"]) > HIGHEST_PORT:
        besides = f", or {or_else}" if or_else else ""
        raise InputError(
            f"must be an address and a port such as '127.0.0.1:9100' or "
            f"'[::1]:9100'{besides}, not {text!r}"
        )
    return Address(match["v6"] or match["host"], int(match["port"]))
