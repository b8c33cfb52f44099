"""Answers that a reader has not read to their end."""

from collections import Counter

from attrs import define, field
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from temper_core import client_network
from temper_serving.turns import BusyError

SMALL_BYTES = 64 * 1024
"""Answers up to this size do not count. Nearly all are smaller."""
MOST_BYTES = 64 * 1024 * 1024


@define(eq=False)
class Unsent:
    """Bounds the bytes of all answers that are held for their readers to ``MOST_BYTES``.

    A reader may take as long as it likes. Without the bound, 48 readers of 16 MiB that do not read
    take more memory than a server has. One network holds at most *share* of what the others leave.
    """

    share: float = 1.0
    _held: Counter[str] = field(factory=Counter, init=False)

    @property
    def held_bytes(self) -> int:
        """Bytes that are held now."""
        return self._held.total()

    def response(self, body: bytes, media_type: str, client: str = "") -> Response:
        """Return the response with *body* for an address. Raises BusyError for too many."""
        size = len(body)
        if size <= SMALL_BYTES:
            return Response(body, media_type=media_type)
        network = client_network(client)
        own = self._held[network]
        left = MOST_BYTES - (self.held_bytes - own)
        if own + size > self.share * left:
            raise BusyError("too many large answers at once")
        self._held[network] += size
        return _Held(self, network, size, body, media_type)

    def release(self, network: str, size: int) -> None:
        """Count *size* bytes as sent."""
        self._held[network] -= size
        if not self._held[network]:
            del self._held[network]


class _Held(Response):
    """Releases its bytes when it has been sent, or its reader has gone."""

    def __init__(
        self, unsent: Unsent, network: str, size: int, body: bytes, media_type: str
    ) -> None:
        super().__init__(body, media_type=media_type)
        self._unsent = unsent
        self._network = network
        self._size = size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, _unended(send))
            # uvicorn returns from a part at once, and takes the next one when that is sent.
            self.body = b""
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._unsent.release(self._network, self._size)


def _unended(send: Send) -> Send:
    """Return a *send* after which another part of the body has to follow."""

    async def send_part(message: Message) -> None:
        is_body = message["type"] == "http.response.body"
        await send({**message, "more_body": True} if is_body else message)

    return send_part
