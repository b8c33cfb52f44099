"""An ASGI application in front of another. It answers only requests of admitted connections."""

from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from temper_core.http.bounds import Bounds
from temper_core.http.protocol import BoundedProtocol, connection_of

REFUSAL = b'{"error":"too many connections are open; ask again later"}\n'
_UNAVAILABLE = 503
_LAST = (b"connection", b"close")


class Gate:
    """Passes a request to *app* if its connection has a place, or if it asks for a probe.

    The answer to a probe needs no place, because Kubernetes restarts an agent that does not answer
    its probes, and that ends enforcement on the node.
    """

    def __init__(self, app: ASGIApp, bounds: Bounds) -> None:
        self._app = app
        self._bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection = connection_of(scope)
        answer_to = partial(_send, connection, send)
        is_probe = scope["path"] in self._bounds.probes
        if is_probe:
            connection.admission.get_free_place(connection)
        if is_probe or await connection.admission.get_place(connection):
            await self._app(scope, receive, answer_to)
        else:
            await _refuse(answer_to)


async def _send(connection: BoundedProtocol, send: Send, message: Message) -> None:
    """Send a part of an answer. The head of the connection's last answer closes the connection."""
    if message["type"] == "http.response.start" and connection.admission.is_last(connection):
        message = {**message, "headers": [*message.get("headers", ()), _LAST]}
    await send(message)


async def _refuse(send: Send) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(REFUSAL)),
        (b"retry-after", b"1"),
    ]
    await send({"type": "http.response.start", "status": _UNAVAILABLE, "headers": headers})
    await send({"type": "http.response.body", "body": REFUSAL})
