"""A request as ASGI passes it, and the ways in which it ends without a reply of an endpoint."""

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl

from attrs import frozen

from temper_core.http.asgi import Receive, Scope


class ClientGone(Exception):  # noqa: N818 - it is no error of the agent
    """The client has disconnected before its request was complete."""


class Refusal(Exception):  # noqa: N818 - it is an answer
    """A request that is refused with an HTTP status.

    Attributes:
        message: The reason, by default the status in words, such as ``Not Found``.
        headers: Headers of the answer, by name in lower case.

    """

    def __init__(
        self, status: int, message: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.message = message or HTTPStatus(status).phrase
        self.headers = dict(headers or {})
        super().__init__(status, self.message)


@frozen
class HttpRequest:
    """The request of one ASGI *scope*. ``receive`` yields its body."""

    scope: Scope
    receive: Receive

    @property
    def method(self) -> str:
        """The method in capital letters."""
        method: str = self.scope["method"]
        return method

    @property
    def path(self) -> str:
        """The path, decoded."""
        path: str = self.scope["path"]
        return path

    @property
    def address(self) -> str:
        """The client's address, empty for a local socket."""
        host, _ = self.scope.get("client") or ("", 0)
        return str(host)

    @property
    def headers(self) -> list[tuple[str, str]]:
        """All headers in order, by their names in lower case."""
        return [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self.scope["headers"]
        ]

    def header(self, name: str, default: str = "") -> str:
        """Return the first header of that *name*, which is in lower case."""
        return next((value for key, value in self.headers if key == name), default)

    def header_values(self, name: str) -> list[str]:
        """Return every header of that *name*, which is in lower case."""
        return [value for key, value in self.headers if key == name]

    @property
    def query(self) -> dict[str, str]:
        """The query parameters. Of several with one name the last counts."""
        query: bytes = self.scope["query_string"]
        return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body piece by piece. Raises ClientGone."""
        is_complete = False
        while not is_complete:
            message = await self.receive()
            if message["type"] != "http.request":
                raise ClientGone
            is_complete = not message.get("more_body", False)
            yield message.get("body", b"")
