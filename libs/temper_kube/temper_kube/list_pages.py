"""Collections of the API server, page by page.

Protocol: Kubernetes' "Retrieving large results sets in chunks": ``limit`` bounds a page, and
``metadata.continue`` names the next one. All pages show one version, which expires after minutes.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

from temper_core import MachineError

Json = Mapping[str, Any]

PAGE = 250
LIST_S = 600.0
"""Seconds for a list with all its pages. A server may send pages and objects without end."""


class ListDeadline:
    """The end of the time that one list has, which begins now."""

    def __init__(self) -> None:
        self._limit_s = LIST_S
        self._at = time.monotonic() + self._limit_s

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._at

    def left_s(self) -> float:
        """Return the seconds left. Raise ``error`` if the time is over."""
        left_s = self._at - time.monotonic()
        if left_s <= 0:
            raise self.error()
        return left_s

    def error(self) -> MachineError:
        """Return the error of a list that is not complete when the time is over."""
        return MachineError(f"the API server's list does not end within {self._limit_s:g} s")


class PageRequest(Protocol):
    """Requests one page: yields its objects as they arrive, then puts the other keys in *rest*."""

    def __call__(self, path: str, rest: dict[str, Any]) -> Iterator[Json]:
        """Request *path*."""
        ...


def list_objects(
    request: PageRequest, path: str, parameters: Mapping[str, str], rest: dict[str, Any]
) -> Iterator[Json]:
    """Yield the objects of a collection, with no more than one in memory.

    ``limit`` in *parameters* bounds a page. *rest* gets the other keys of the first page. Raises
    the errors of *request*: GoneError if the version has expired between two pages.
    """
    following: Mapping[str, str] = {}
    while True:
        keys: dict[str, Any] = {}
        yield from request(with_query(path, {**parameters, **following}), keys)
        if not rest:
            rest.update(keys)
        metadata = keys.get("metadata")
        token = metadata.get("continue") if isinstance(metadata, dict) else None
        if not token:
            return
        following = {"continue": str(token)}


def version_of(item: Json) -> str:
    """Return the version of a list or an object. Empty if it has none."""
    metadata = item.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""


def require_object(item: Json) -> None:
    """Raise TypeError for an object whose metadata, spec or status no API server sends."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise TypeError("it has no name")
    for key in ("labels", "annotations"):
        texts = metadata.get(key) or {}
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise TypeError(f"its {key} are no texts")
    for key in ("spec", "status"):
        if not isinstance(item.get(key) or {}, dict):
            raise TypeError(f"its {key} is no object")


def with_query(path: str, parameters: Mapping[str, str]) -> str:
    """Return *path* with its parameters."""
    return f"{path}?{urlencode(parameters)}" if parameters else path
