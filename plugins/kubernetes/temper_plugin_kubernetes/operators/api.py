"""The API server as an operator asks it: lists in pages, and refusals that name the right."""

import re
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from attrs import frozen

from temper_core import MachineError
from temper_plugin_kubernetes.access import Access
from temper_plugin_kubernetes.connection import Connection, Json
from temper_plugin_kubernetes.failures import AwayError, RefusalError

PAGE = 250
MERGE_PATCH = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404
_MAY_NOT = re.compile(
    r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_WHO = re.compile(r'User "(?P<user>[^"]+)"')


class ForbiddenError(MachineError):
    """A right is missing; ``right`` says which, as ``verb resource.group``."""

    def __init__(self, right: str, who: str) -> None:
        self.right = right
        super().__init__(f"forbidden: {who} lacks the right to {right}")


class ApiServer:
    """One connection; every failure is a MachineError that says what to do."""

    def __init__(self, access: Access, timeout_s: float = 10.0) -> None:
        self.access = access
        self._connection = Connection(access, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def get(self, path: str, accept: str = "") -> Json:
        """Return one answer."""
        return self._ask("GET", path, accept=accept)

    def find(self, path: str) -> Json | None:
        """Return one object; None where it does not exist."""
        try:
            return self.get(path)
        except MissingError:
            return None

    def post(self, path: str, body: Json) -> Json:
        """Send *body* and return the answer."""
        return self._ask("POST", path, body)

    def patch(self, path: str, change: Json) -> Json:
        """Merge *change* into an object."""
        return self._ask("PATCH", path, change, media_type=MERGE_PATCH)

    def list(self, path: str, selector: str = "", *, accept: str = "") -> Iterator[Json]:
        """Yield every object of a collection, page by page."""
        asked = {"limit": str(PAGE), **({"labelSelector": selector} if selector else {})}
        while True:
            answer = self.get(f"{path}?{urlencode(asked)}", accept)
            yield from answer.get("items") or ()
            going_on = (answer.get("metadata") or {}).get("continue")
            if not going_on:
                return
            asked["continue"] = going_on

    def _ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        media_type: str = "",
        accept: str = "",
    ) -> Json:
        try:
            return self._connection.ask(method, path, body, media_type=media_type, accept=accept)
        except RefusalError as error:
            raise _explained(error, method, path) from error
        except AwayError as error:
            raise MachineError(f"no API server: {error}") from error


class MissingError(MachineError):
    """There is no such object, or the server does not know its kind."""


@frozen
class Unknown:
    """Something that could not be looked at, and why."""

    what: str
    why: str


def _explained(error: RefusalError, method: str, path: str) -> MachineError:
    text = str(error).partition(": ")[2]
    if error.status == FORBIDDEN and (found := _MAY_NOT.search(text)):
        return ForbiddenError(_right(found.groupdict()), _who(text))
    if error.status == FORBIDDEN:
        return ForbiddenError(f"{method.lower()} {path.partition('?')[0]}", _who(text))
    if error.status == UNAUTHORIZED:
        return MachineError(
            "the API server does not accept these credentials (401): the token or certificate "
            "may have expired"
        )
    if error.status == NOT_FOUND:
        return MissingError(f"{path.partition('?')[0]}: {text}")
    return error


def _right(found: Mapping[str, Any]) -> str:
    resource = f"{found['resource']}.{found['group']}" if found["group"] else found["resource"]
    where = f" in the namespace {found['namespace']}" if found["namespace"] else ""
    return f"{found['verb']} {resource}{where or ' in the whole cluster'}"


def _who(text: str) -> str:
    found = _WHO.search(text)
    return found["user"] if found else "this user"
