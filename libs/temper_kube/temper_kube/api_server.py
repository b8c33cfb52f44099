"""Single requests to the API server: paged lists, and refusals that name the missing right."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Self, TypeVar

from temper_core import MachineError
from temper_kube.access import Access
from temper_kube.connection import Connection, Content
from temper_kube.failures import (
    CONFLICT,
    MALFORMED,
    TOO_MANY,
    ConflictError,
    CredentialsError,
    ForbiddenError,
    GoneError,
    MalformedError,
    NotFoundError,
    RefusalError,
    UnreachableError,
)
from temper_kube.list_pages import PAGE, Json, ListDeadline, list_objects, require_object

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404
RETRIES = 3
LONGEST_PAUSE_S = 10.0
LONGEST_REASON = 200
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_MISSING_RIGHT = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_USER = re.compile(r'User "(?P<user>[^"]+)"')
_Answer = TypeVar("_Answer")
_Record = TypeVar("_Record")


class ApiServer:
    """One connection. Each failure is a MachineError, an UnreachableError without an answer.

    *permit* is asked before each attempt to write. It returns how many seconds that may take, None
    for the usual time, or raises MachineError.
    """

    def __init__(
        self,
        access: Access,
        timeout_s: float = 10.0,
        permit: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.access = access
        self._permit = permit
        self._connection = Connection(access, timeout_s)
        self._is_warm = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, path: str, accept: str = "") -> Json:
        """Return one answer."""
        return self._ask("GET", path, accept=accept)

    def text(self, path: str, most_bytes: int) -> str:
        """Return an answer that is not JSON, as a log. One of more bytes is a MachineError."""

        def ask() -> Content:
            return self._connection.content(path, most_bytes=most_bytes)

        with _explained_failures("GET", path):
            answer = self._patiently(ask)
        self._is_warm = True
        return answer.body.decode(errors="replace")

    def find(self, path: str) -> Json | None:
        """Return one object. None if it does not exist."""
        try:
            return self.get(path)
        except NotFoundError:
            return None

    def post(self, path: str, body: Json) -> Json:
        """Send *body* and return the answer."""
        return self._ask("POST", path, body)

    def put(self, path: str, body: Json) -> Json:
        """Replace an object. *body* names the version to replace."""
        return self._ask("PUT", path, body)

    def patch(self, path: str, change: Json, media_type: str = MERGE_PATCH) -> Json:
        """Merge *change* into an object."""
        return self._ask("PATCH", path, change, media_type=media_type)

    def delete(self, path: str, options: Json | None = None) -> None:
        """Delete an object. *options* are DeleteOptions, such as preconditions."""
        self._ask("DELETE", path, options)

    def list(
        self, path: str, labels: str = "", *, fields: str = "", accept: str = ""
    ) -> list[Json]:
        """Return every object of a collection once, requested page by page."""
        return [*self.read(path, _itself, labels, fields=fields, accept=accept)]

    def read(
        self,
        path: str,
        record_of: Callable[[Json], _Record],
        labels: str = "",
        *,
        fields: str = "",
        accept: str = "",
    ) -> tuple[_Record, ...]:
        """Return *record_of* every object of a collection, with one object in memory at a time.

        A malformed object, for which *record_of* raises one of ``MALFORMED``, is a MalformedError.
        """
        try:
            items = self.each(path, labels, fields=fields, accept=accept)
            return tuple(_recorded(record_of, item, path) for item in items)
        except GoneError:
            # The version expired between pages (after about 5 min): request all objects at once.
            items = self.each(path, labels, fields=fields, accept=accept, page=0)
            return tuple(_recorded(record_of, item, path) for item in items)

    def each(
        self, path: str, labels: str = "", *, fields: str = "", accept: str = "", page: int = PAGE
    ) -> Iterator[Json]:
        """Yield every object of a collection, with no more than one in memory.

        Other requests have to wait until the last one. Raises GoneError if the list's version
        expires between two pages, and MachineError after ``LIST_S`` of ``list_pages``.
        """
        deadline = ListDeadline()
        options = {"limit": str(page or ""), "labelSelector": labels, "fieldSelector": fields}
        parameters = {key: value for key, value in options.items() if value}
        return list_objects(
            partial(self._items, accept=accept, deadline=deadline), path, parameters, {}
        )

    def _items(
        self, path: str, rest: dict[str, Any], *, accept: str, deadline: ListDeadline
    ) -> Iterator[Json]:
        def request() -> Iterator[Json]:
            return self._connection.items(path, rest, accept=accept, limit_s=deadline.left_s())

        with _explained_failures("GET", path):
            try:
                yield from self._patiently(request)
            except UnreachableError as error:
                if not deadline.is_over:
                    raise
                raise deadline.error() from error
        self._is_warm = True

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
            limit_s = None if method == "GET" else self._permit()
            return self._connection.ask(
                method, path, body, media_type=media_type, accept=accept, limit_s=limit_s
            )

        with _explained_failures(method, path):
            answer = self._patiently(ask)
        self._is_warm = True
        return answer

    def _patiently(self, ask: Callable[[], _Answer]) -> _Answer:
        """Send a request, and repeat it where that may help. Requests must be safe to repeat.

        It is repeated after a pause that the server requested, and over a new connection if the
        server has closed an idle one.
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


def _itself(item: Json) -> Json:
    return item


def _recorded(record_of: Callable[[Json], _Record], item: Json, path: str) -> _Record:
    """Return *record_of* the object. Raise MalformedError if it has values of the wrong types."""
    try:
        require_object(item)
        return record_of(item)
    except MALFORMED as error:
        why = " ".join(str(error).split())[:LONGEST_REASON]
        raise MalformedError(path, why) from error


@contextmanager
def _explained_failures(method: str, path: str) -> Iterator[None]:
    try:
        yield
    except RefusalError as error:
        raise _explained(error, method, path) from error
    except UnreachableError as error:
        raise UnreachableError(f"no API server: {error}{_proxy_hint()}") from error


def _explained(error: RefusalError, method: str, path: str) -> MachineError:
    text = error.message
    if error.status == FORBIDDEN and (matched := _MISSING_RIGHT.search(text)):
        return ForbiddenError(_right(matched.groupdict()), _user_in(text))
    if error.status == FORBIDDEN and method == "GET":  # no admission judges what is only read
        asked = f"get {path.partition('?')[0]}"
        return ForbiddenError(f"{asked}: {text}" if text else asked, _user_in(text))
    if error.status == UNAUTHORIZED:
        return CredentialsError()
    if error.status == NOT_FOUND:
        return NotFoundError(path.partition("?")[0], text)
    if error.status == CONFLICT:
        return ConflictError(text)
    return error


def _right(groups: Mapping[str, Any]) -> str:
    resource = f"{groups['resource']}.{groups['group']}" if groups["group"] else groups["resource"]
    where = f" in the namespace {groups['namespace']}" if groups["namespace"] else ""
    return f"{groups['verb']} {resource}{where or ' in the whole cluster'}"


def _proxy_hint() -> str:
    variable = next((name for name in PROXIES if os.environ.get(name)), None)
    return f"; {variable} is set, and proxies are not used" if variable else ""


def _user_in(text: str) -> str:
    matched = _USER.search(text)
    return matched["user"] if matched else "this user"
