"""The names by which requests over TCP may call the agent: protection from DNS rebinding.

A web page of ``evil.example`` can have its name resolve to an address of the agent, and then reads
the agent's answers as those of its own origin. The ``Host`` of its requests is ``evil.example``
still. A page cannot change it (Fetch Standard, forbidden request-headers). A name that cannot be
registered in the public DNS is no such page's.
"""

import ipaddress
import os
import re
from collections.abc import Iterable

from attrs import frozen

EVERY_NAME = "*"
PRIVATE_DOMAINS = ("localhost", "local", "internal", "home.arpa", "svc")
"""Domains that the public DNS does not have: RFC 6761, RFC 6762, ICANN's resolution of 2024-07-29,
RFC 8375, and the Services of Kubernetes."""
_WRITTEN = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[\w.-]+))(?::\d{0,5})?", re.ASCII)


@frozen
class KnownHosts:
    """The names of the agent, in lower case. One that begins with a dot has all below it."""

    names: frozenset[str]

    def is_known(self, host: str) -> bool:
        """Whether a ``Host`` header names this agent, or a host that no foreign page can have."""
        if EVERY_NAME in self.names:
            return True
        written = _WRITTEN.fullmatch(host)
        if written is None:
            return False
        return bool(written["v6"]) or self._is_known_name(written["name"].rstrip(".").lower())

    def _is_known_name(self, name: str) -> bool:
        if "." not in name or _is_address(name) or name in self.names:
            return True
        domains = [f".{domain}" for domain in PRIVATE_DOMAINS]
        domains += [known for known in self.names if known.startswith(".")]
        return name.endswith(tuple(domains))


def known_hosts(names: Iterable[str]) -> KnownHosts:
    """Return *names*, and those that the environment and the kernel have for this node."""
    own = (*names, os.environ.get("NODE_NAME", ""), os.uname().nodename)
    return KnownHosts(frozenset(name.rstrip(".").lower() for name in own if name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
