"""The headers of answers: those that an endpoint may set, and those that the agent adds."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from temper_core.records.endpoints import Cookie

Head = tuple[tuple[str, str], ...]

MOST_HEADERS = 64
LARGEST_HEADERS_BYTES = 16 * 1024
NOT_KEPT = "no-store"
REVALIDATED = "no-cache"
SECURITY: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": (
            "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
            "object-src 'none'"
        ),
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
    }
)
"""Headers of every plugin's answer, unless the answer sets another value."""
RESERVED: Mapping[str, str] = MappingProxyType(
    {
        "content-type": "give it as media_type",
        "set-cookie": "give it as cookies",
        "x-content-type-options": "it is always nosniff",
        **dict.fromkeys(
            (
                "connection",
                "content-length",
                "keep-alive",
                "server",
                "trailer",
                "transfer-encoding",
                "upgrade",
            ),
            "it is the server's own",
        ),
    }
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")


def given_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return an endpoint's *headers* by name in lower case. Raise ValueError for a bad header."""
    if len(headers) > MOST_HEADERS:
        raise ValueError(f"gives more than {MOST_HEADERS} headers")
    checked: dict[str, str] = {}
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"gives a header whose name is {name!r:.100}")
        lower = name.lower()
        if lower in RESERVED:
            raise ValueError(f"gives the header {lower}: {RESERVED[lower]}")
        checked[lower] = header_value(lower, value)
    if sum(len(name) + len(value) for name, value in checked.items()) > LARGEST_HEADERS_BYTES:
        raise ValueError(f"gives headers of more than {LARGEST_HEADERS_BYTES} bytes")
    return checked


def header_value(name: str, value: object) -> str:
    """Return *value* without outer spaces. Raise ValueError unless it is one line of Latin-1."""
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise ValueError(f"gives the header {name} a value that is no line of text")
    return value.strip()


def cookie_headers(cookies: Iterable[object]) -> Head:
    """Return a header per cookie. Each is HttpOnly, and is not sent from other sites."""
    return tuple(("set-cookie", _cookie(cookie)) for cookie in cookies)


def _cookie(cookie: object) -> str:
    if not isinstance(cookie, Cookie):
        raise TypeError(f"gives the cookie {cookie!r:.100}, which is no Cookie")
    age = "" if cookie.max_age_s is None else f"; Max-Age={cookie.max_age_s:d}"
    return f"{cookie.name}={cookie.value}; Path={cookie.path}{age}; HttpOnly; SameSite=Strict"
