"""Answers of agents that a reader has not read to their end."""

from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from temper_plugin_dashboard.fleet.guarding import refusal

SMALL_BYTES = 64 * 1024
"""Answers up to this size do not count. Nearly all are smaller."""
MOST_BYTES = 64 * 1024 * 1024
RETRY_S = 1


class Unsent:
    """Bounds the bytes of all answers that are held for their readers to ``MOST_BYTES``.

    A reader may take as long as it likes. Without the bound, 48 readers of 16 MiB that do not read
    take more memory than the server has.
    """

    def __init__(self) -> None:
        self.held_bytes = 0

    def response(self, body: bytes, media_type: str) -> Response:
        """Return the response with *body*, or 503 if too many answers are held."""
        size = len(body) if len(body) > SMALL_BYTES else 0
        if self.held_bytes + size > MOST_BYTES:
            answer = refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many large answers at once")
            answer.headers["retry-after"] = str(RETRY_S)
            return answer
        self.held_bytes += size
        return _Held(self, size, body, media_type)

    def release(self, size: int) -> None:
        """Count *size* bytes as sent."""
        self.held_bytes -= size


class _Held(Response):
    """Releases its bytes when it has been sent, or its reader has gone."""

    def __init__(self, unsent: Unsent, size: int, body: bytes, media_type: str) -> None:
        super().__init__(body, media_type=media_type)
        self._unsent = unsent
        self._size = size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._unsent.release(self._size)
