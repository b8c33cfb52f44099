"""The API server as an operator asks it: lists in pages, and refusals that name the right."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self
from urllib.parse import urlencode

from attrs import frozen

from temper_core import MachineError
from temper_plugin_kubernetes.access import Access
from temper_plugin_kubernetes.connection import Connection, Json
from temper_plugin_kubernetes.failures import AwayError, GoneError, RefusalError

PAGE = 250
MERGE_PATCH = "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_MANY = 401, 403, 404, 429
RETRIES = 3
LONGEST_PAUSE_S = 10.0
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
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
        except MissingError:
            return None

    def post(self, path: str, body: Json) -> Json:
        """Send *body* and return the answer."""
        return self._ask("POST", path, body)

    def patch(self, path: str, change: Json) -> Json:
        """Merge *change* into an object."""
        return self._ask("PATCH", path, change, media_type=MERGE_PATCH)

    def list(self, path: str, selector: str = "", *, accept: str = "") -> Iterator[Json]:
        """Yield every object of a collection, asked for page by page, each once."""
        asked = {"limit": str(PAGE), **({"labelSelector": selector} if selector else {})}
        try:
            found = [item for page in self._pages(path, asked, accept) for item in page]
        except GoneError:
            # The pages took longer than the server remembers (some 5 min): all of it at once.
            del asked["limit"]
            found = [item for page in self._pages(path, asked, accept) for item in page]
        yield from found

    def _pages(self, path: str, asked: Mapping[str, str], accept: str) -> Iterator[Iterable[Json]]:
        going_on: Mapping[str, str] = {}
        while True:
            answer = self.get(f"{path}?{urlencode({**asked, **going_on})}", accept)
            yield answer.get("items") or ()
            token = (answer.get("metadata") or {}).get("continue")
            if not token:
                return
            going_on = {"continue": token}

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
        except AwayError as error:
            raise MachineError(f"no API server: {error}{_proxy_hint()}") from error
        self._is_warm = True
        return answer

    def _patiently(self, ask: Callable[[], Json]) -> Json:
        """Ask, and again where that may help; whatever is asked here may be asked twice.

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
            except AwayError as error:
                if not self._is_warm or isinstance(error.__cause__, TimeoutError):
                    raise
                self._is_warm = False
        return ask()


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


def _proxy_hint() -> str:
    named = next((name for name in PROXIES if os.environ.get(name)), None)
    return f"; {named} is set, and proxies are not used" if named else ""


def _who(text: str) -> str:
    found = _WHO.search(text)
    return found["user"] if found else "this user"
