"""Identifies requesters and authorizes them by the local socket or, over TCP, a bearer token."""

import ipaddress
from urllib.parse import urlsplit

from attrs import frozen

from temper_core.errors import MachineError
from temper_core.http.protocol import connection_of
from temper_core.records.endpoints import Requester
from temper_core.server.hosts import KnownHosts
from temper_core.server.http_request import HttpRequest, Refusal
from temper_core.server.token import Token

UNAUTHORISED = 401
FORBIDDEN = 403
LONGEST_HOST = 255
SAME_ORIGIN = ("same-origin", "none")
"""``Sec-Fetch-Site`` of requests that no page of another origin caused."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


@frozen
class Authorizer:
    """Identifies requesters. The trusted local socket may act, other requesters need a token."""

    token: Token
    socket: str
    is_trusted: bool
    hosts: KnownHosts

    def requester(self, http: HttpRequest) -> Requester:
        """Return the requester, as far as it is known."""
        if self.is_trusted:
            return Requester("socket", uid=connection_of(http.scope).peer_uid)
        address = http.address
        authorization = http.header("authorization")
        try:
            token = self.token.given_by(authorization) if authorization else None
        except MachineError:
            token = None
        if token is None:
            return Requester(address=address)
        return Requester("token", token.name, address=address)

    def require_known_host(self, http: HttpRequest) -> None:
        """Raise Refusal if a request over TCP calls the agent by a name that is not its own.

        Without ``Host`` it is from no browser.
        """
        host = http.header("host")
        if not self.is_trusted and host and not self.hosts.is_known(host):
            message = f"{host[:LONGEST_HOST]!r} is no name of this agent; [server] hosts can add it"
            raise Refusal(FORBIDDEN, message)

    def require_right_to_act(self, http: HttpRequest, requester: Requester) -> None:
        """Raise Refusal unless *requester* may act."""
        if self.is_trusted:
            return
        if not is_same_origin(http):
            raise Refusal(FORBIDDEN, "a page of another origin may not act")
        if requester.way:
            return
        try:
            self.token.tokens()
        except MachineError as error:
            local = f"use the local socket {self.socket}" if self.socket else "set [server] socket"
            remedy = f"{local}, or give [server] a token_file"
            message = f"requests over TCP may not act: {error}; {remedy}"
            raise Refusal(FORBIDDEN, message) from error
        raise Refusal(
            UNAUTHORISED,
            "acting needs the bearer token of [server] token_file, or the local socket",
            headers={"www-authenticate": "Bearer"},
        )


def is_same_origin(http: HttpRequest) -> bool:
    """Whether a request comes from no browser, or from a page of the same origin.

    Browsers add ``Sec-Fetch-Site`` (Fetch Metadata) and ``Origin`` (RFC 6454). A page cannot change
    either.
    """
    if http.header("sec-fetch-site", SAME_ORIGIN[0]) not in SAME_ORIGIN:
        return False
    origins = http.header_values("origin")
    hosts = http.header_values("host")
    if not origins:
        return True
    if len(origins) > 1 or len(hosts) != 1:
        return False
    scheme, place = _place(origins[0])
    return place is not None and place == _place(f"{scheme}://{hosts[0]}")[1]


def _place(origin: str) -> tuple[str, tuple[str, int] | None]:
    """Return the scheme of *origin*, and its host and port, or None for an origin without."""
    try:
        parts = urlsplit(origin)
        scheme, host = parts.scheme, parts.hostname
        port = parts.port or _DEFAULT_PORTS[scheme]
    except (ValueError, KeyError):
        return "", None
    if not host or parts.path or parts.query or parts.username is not None:
        return scheme, None
    return scheme, (_plain_host(host), port)


def _plain_host(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.rstrip(".").lower()
