"""An ASGI application in front of another. It answers only requests of admitted connections."""

import re
from collections.abc import Callable
from functools import partial
from urllib.parse import unquote

from temper_core.http.asgi import ASGIApp, Message, Receive, Scope, Send
from temper_core.http.bounds import Bounds
from temper_core.http.protocol import BoundedProtocol, connection_of

REFUSAL = b'{"error":"too many connections are open; ask again later"}\n'
TWO_LENGTHS = b'{"error":"content-length together with transfer-encoding is not accepted"}\n'
ODD_TARGET = b'{"error":"the target of the request is no URL of http with a host"}\n'
_BAD_REQUEST = 400
_UNAVAILABLE = 503
_LAST = (b"connection", b"close")
_AGAIN = (b"retry-after", b"1")
_LENGTHS = frozenset({b"content-length", b"transfer-encoding"})
_HAS_SCHEME = re.compile(rb"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_ABSOLUTE = re.compile(rb"https?://(?P<host>[^/@\s]+)(?P<path>/.*)?", re.IGNORECASE)


class Gate:
    """Passes a request to *app* if its connection has a place, or if it asks for a probe.

    A request with both ``Content-Length`` and ``Transfer-Encoding`` is refused. One whose target is
    a URL is passed on with its path, and with its host as the ``Host``.

    The answer to a probe needs no place, because Kubernetes restarts an agent that does not answer
    its probes, and that ends enforcement on the node. *refused* is called for each request that
    gets no place.
    """

    def __init__(
        self, app: ASGIApp, bounds: Bounds, refused: Callable[[], object] = lambda: None
    ) -> None:
        self._app = app
        self._bounds = bounds
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = connection_of(scope)
        answer_to = partial(_send, connection, send)
        if _has_two_lengths(scope):
            await _refuse(send, _BAD_REQUEST, TWO_LENGTHS, _LAST)
            return
        if _HAS_SCHEME.match(scope["raw_path"]):
            target = _ABSOLUTE.fullmatch(scope["raw_path"])
            if target is None:
                await _refuse(send, _BAD_REQUEST, ODD_TARGET, _LAST)
                return
            scope = _relative(scope, target)
        is_probe = scope["path"] in self._bounds.probes
        if is_probe:
            connection.admission.get_free_place(connection)
        if is_probe or await connection.admission.get_place(connection):
            await self._app(scope, receive, answer_to)
        else:
            self._refused()
            await _refuse(answer_to, _UNAVAILABLE, REFUSAL, _AGAIN)


def _has_two_lengths(scope: Scope) -> bool:
    """Whether a proxy in front may have found another end of the body (RFC 9112, 6.1 and 11.2).

    Such a request may have been made to smuggle a second one past the proxy.
    """
    return _LENGTHS.issubset(name for name, _ in scope["headers"])


def _relative(scope: Scope, target: re.Match[bytes]) -> Scope:
    """Return *scope* as if its *target* were a path.

    Its host stands for ``Host``, so that it is the one that is checked (RFC 9112, 3.2.2).
    """
    path = target["path"] or b"/"
    others = [(name, value) for name, value in scope["headers"] if name != b"host"]
    return {
        **scope,
        "raw_path": path,
        "path": unquote(path.decode("ascii", "replace")),
        "headers": [(b"host", target["host"]), *others],
    }


async def _send(connection: BoundedProtocol, send: Send, message: Message) -> None:
    """Send a part of an answer. The head of the connection's last answer closes the connection."""
    if message["type"] == "http.response.start" and connection.admission.is_last(connection):
        message = {**message, "headers": [*message.get("headers", ()), _LAST]}
    await send(message)


async def _refuse(send: Send, status: int, body: bytes, header: tuple[bytes, bytes]) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        header,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
