"""The network by which clients of one address range are counted as one."""

from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import TypeVar

_Key = TypeVar("_Key")

IPV6_PREFIX_BITS = 64
"""A host of IPv6 gets a whole /64 and may take any address of it (RFC 4291, 2.5.4)."""


def client_network(address: str) -> str:
    """Return the network to count a client's *address* by.

    It is the address itself for IPv4, also where it is mapped to IPv6 (``::ffff:10.0.0.1``), and
    the prefix of 64 bits for IPv6 (``2001:db8::/64``). A text that is no IP address is returned
    unchanged, such as the empty one of a local socket.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed), IPV6_PREFIX_BITS), strict=False))


def oldest_of_the_most(networks: Mapping[_Key, str]) -> _Key:
    """Return the first key of the network that has the most of them. *networks* is not empty."""
    present = Counter(networks.values())
    return max(networks, key=lambda key: present[networks[key]])
