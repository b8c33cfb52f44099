"""Requests to the API server, one by one: lists in pages, refusals that name the right."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from temper_core import MachineError
from temper_kube.access import Access
from temper_kube.connection import Connection
from temper_kube.failures import (
    CONFLICT,
    ConflictError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    RefusalError,
    UnreachableError,
)
from temper_kube.list_pages import PAGE, Json, list_pages, objects_of

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_MANY = 401, 403, 404, 429
RETRIES = 3
LONGEST_PAUSE_S = 10.0
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_MISSING_RIGHT = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_USER = re.compile(r'User "(?P<user>[^"]+)"')


class ApiServer:
    """One connection. Every failure is a MachineError that names what is missing."""

    def __init__(self, access: Access, timeout_s: float = 10.0) -> None:
        self.access = access
        self._connection = Connection(access, timeout_s)
        self._is_warm = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, path: str, accept: str = "") -> Json:
        """Return one answer."""
        return self._ask("GET", path, accept=accept)

    def find(self, path: str) -> Json | None:
        """Return one object; None where it does not exist."""
        try:
            return self.get(path)
        except NotFoundError:
            return None

    def post(self, path: str, body: Json) -> Json:
        """Send *body* and return the answer."""
        return self._ask("POST", path, body)

    def put(self, path: str, body: Json) -> Json:
        """Replace an object, of the version that *body* names."""
        return self._ask("PUT", path, body)

    def patch(self, path: str, change: Json, media_type: str = MERGE_PATCH) -> Json:
        """Merge *change* into an object."""
        return self._ask("PATCH", path, change, media_type=media_type)

    def list(
        self, path: str, labels: str = "", *, fields: str = "", accept: str = ""
    ) -> list[Json]:
        """Return every object of a collection, asked for page by page, each once."""
        try:
            return [*self.each(path, labels, fields=fields, accept=accept)]
        except GoneError:
            # The pages took longer than the server remembers (some 5 min): all of it at once.
            return [*self.each(path, labels, fields=fields, accept=accept, page=0)]

    def each(
        self, path: str, labels: str = "", *, fields: str = "", accept: str = "", page: int = PAGE
    ) -> Iterator[Json]:
        """Yield every object of a collection, of which no more than a page is held.

        Raises GoneError where the version that it shows expires on the way.
        """
        given = {"limit": str(page or ""), "labelSelector": labels, "fieldSelector": fields}
        parameters = {key: value for key, value in given.items() if value}
        for found in list_pages(lambda asked: self.get(asked, accept), path, parameters):
            yield from objects_of(found)

    def _ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        media_type: str = "",
        accept: str = "",
    ) -> Json:
        def ask() -> Json:
            return self._connection.ask(method, path, body, media_type=media_type, accept=accept)

        try:
            answer = self._patiently(ask)
        except RefusalError as error:
            raise _explained(error, method, path) from error
        except UnreachableError as error:
            raise MachineError(f"no API server: {error}{_proxy_hint()}") from error
        self._is_warm = True
        return answer

    def _patiently(self, ask: Callable[[], Json]) -> Json:
        """Ask, and again where that may help. Whatever is asked here may be asked twice.

        That is after a pause that the server asked for, and over a new connection where it has
        closed the old one, as it does to those that rest.
        """
        for _ in range(RETRIES):
            try:
                return ask()
            except RefusalError as error:
                if error.status != TOO_MANY:
                    raise
                time.sleep(min(max(error.retry_after_s, 1.0), LONGEST_PAUSE_S))
            except UnreachableError as error:
                if not self._is_warm or isinstance(error.__cause__, TimeoutError):
                    raise
                self._is_warm = False
        return ask()


def _explained(error: RefusalError, method: str, path: str) -> MachineError:
    text = error.message
    if error.status == FORBIDDEN and (found := _MISSING_RIGHT.search(text)):
        return ForbiddenError(_right(found.groupdict()), _user_in(text))
    if error.status == FORBIDDEN:
        return ForbiddenError(f"{method.lower()} {path.partition('?')[0]}", _user_in(text))
    if error.status == UNAUTHORIZED:
        return MachineError(
            "the API server does not accept these credentials (401): the token or certificate "
            "may have expired"
        )
    if error.status == NOT_FOUND:
        return NotFoundError(path.partition("?")[0], text)
    if error.status == CONFLICT:
        return ConflictError(text)
    return error


def _right(found: Mapping[str, Any]) -> str:
    resource = f"{found['resource']}.{found['group']}" if found["group"] else found["resource"]
    where = f" in the namespace {found['namespace']}" if found["namespace"] else ""
    return f"{found['verb']} {resource}{where or ' in the whole cluster'}"


def _proxy_hint() -> str:
    named = next((name for name in PROXIES if os.environ.get(name)), None)
    return f"; {named} is set, and proxies are not used" if named else ""


def _user_in(text: str) -> str:
    found = _USER.search(text)
    return found["user"] if found else "this user"
