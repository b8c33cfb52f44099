"""Collections of the API server, page by page.

Protocol: Kubernetes' "Retrieving large results sets in chunks": ``limit`` bounds a page, and
``metadata.continue`` names the next one. All pages show one version, which expires after minutes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

Json = Mapping[str, Any]

PAGE = 250


def list_pages(
    get: Callable[[str], Json], path: str, parameters: Mapping[str, str]
) -> Iterator[Json]:
    """Yield the pages of a collection, requested with *get*. ``limit`` bounds their size.

    Raises the errors of *get*: GoneError if the version has expired between two pages.
    """
    following: Mapping[str, str] = {}
    while True:
        page = get(with_query(path, {**parameters, **following}))
        metadata = page.get("metadata")
        token = metadata.get("continue") if isinstance(metadata, dict) else None
        yield page
        if not token:
            return
        following = {"continue": str(token)}


def objects_of(page: Json) -> Iterator[Json]:
    """Yield the objects of a page."""
    return (item for item in page.get("items") or () if isinstance(item, dict))


def version_of(item: Json) -> str:
    """Return the version of a list or an object. Empty if it has none."""
    metadata = item.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""


def with_query(path: str, parameters: Mapping[str, str]) -> str:
    """Return *path* with its parameters."""
    return f"{path}?{urlencode(parameters)}" if parameters else path
