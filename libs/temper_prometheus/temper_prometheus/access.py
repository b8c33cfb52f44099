"""Where a Prometheus is, and what a request to it needs. No message contains a credential."""

import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from attrs import field, frozen

from temper_core import InputError, read_text

LARGEST_TOKEN_BYTES = 16 * 1024
LONGEST_TENANT = 150
"""Characters of a tenant of Mimir (docs, "About tenant IDs")."""
_TENANT = frozenset("!-_.*'()|0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


@frozen
class Access:
    """The way to a Prometheus. ``url`` ends without a slash, ``headers`` may hold a token."""

    url: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    tls: ssl.SSLContext | None = None


def access(
    url: str, token_file: Path | None = None, ca_file: Path | None = None, tenant: str | None = None
) -> Access:
    """Return the way to the Prometheus at *url*.

    Raises InputError if an address, a file or a tenant cannot be used, or if the token would go
    through a network without TLS.
    """
    checked = checked_url(url)
    headers = {}
    if token_file is not None:
        _require_private(checked)
        headers["Authorization"] = f"Bearer {_token(token_file)}"
    if tenant is not None:
        headers["X-Scope-OrgID"] = _tenant(tenant)
    is_secure = checked.startswith("https:")
    if ca_file is not None and not is_secure:
        raise InputError("--prometheus-ca-file needs an address with https")
    return Access(checked, headers, _tls(ca_file) if is_secure else None)


def checked_url(url: str) -> str:
    """Return *url* without a slash at its end. Raises InputError, which never quotes the URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError("--prometheus: the address is no URL") from error
    problem = ""
    if not url.isascii() or not url.isprintable() or " " in url:
        problem = "has characters that no URL has"
    elif parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        problem = "must be such as http://prometheus:9090 or https://host/prometheus"
    elif parts.username is not None or parts.password is not None:
        problem = "must not hold a user or a password; use --prometheus-token-file"
    elif "?" in url or "#" in url:
        problem = "must not have a query or a fragment"
    if problem:
        raise InputError(f"--prometheus: the address {problem}")
    return url.rstrip("/")


def _require_private(url: str) -> None:
    """Raise InputError if a token would pass a network without TLS."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise InputError("--prometheus-token-file needs https: http would show the token")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(path: Path) -> str:
    token = read_text(path, largest_bytes=LARGEST_TOKEN_BYTES).strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(f"{path}: must hold one bearer token of printable characters")
    return token


def _tenant(tenant: str) -> str:
    if not 0 < len(tenant) <= LONGEST_TENANT or not _TENANT.issuperset(tenant):
        raise InputError("--prometheus-tenant: must be the name of a tenant of Mimir")
    return tenant


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise InputError(f"{ca_file}: has no certificate that can be read") from error
