"""The user that a kubeconfig acts as: ``as``, ``as-uid``, ``as-groups`` and ``as-user-extra``.

The headers are those of client-go's ``NewImpersonatingRoundTripper``.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

Headers = tuple[tuple[str, str], ...]

COMPANIONS = ("as-uid", "as-groups", "as-user-extra")
# The characters of a header's name by RFC 9110, without the sign of an escape.
_IN_A_NAME = "!#$&'*+-.^_`|~"


def impersonation_of(user: Mapping[str, Any]) -> Headers:
    """Return the headers for the user's entry of a kubeconfig. A name may stand more than once.

    Raises TypeError or ValueError for malformed values, and for groups and the like without a user.
    """
    if user.get("as"):
        return tuple((name, _checked(name, value)) for name, value in _headers(user))
    if any(user.get(key) for key in COMPANIONS):
        raise ValueError(f"{' or '.join(COMPANIONS)} without 'as' names no user to act as")
    return ()


def _headers(user: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    yield "Impersonate-User", user["as"]
    if user.get("as-uid"):
        yield "Impersonate-Uid", user["as-uid"]
    for group in _list("as-groups", user.get("as-groups")):
        yield "Impersonate-Group", group
    extra = user.get("as-user-extra") or {}
    if not isinstance(extra, dict):
        raise TypeError("as-user-extra must be lists of texts by name")
    for key, values in extra.items():
        for value in _list("as-user-extra", values):
            yield f"Impersonate-Extra-{quote(str(key), safe=_IN_A_NAME)}", value


def _list(key: str, value: object) -> list[object]:
    if value is not None and not isinstance(value, list):
        raise TypeError(f"{key} must have lists of texts")
    return value or []


def _checked(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"the value of {name} must be a text without control characters")
    # http.client writes Latin-1, and the API server reads UTF-8.
    return value.encode().decode("latin-1")
