"""Streams of server-sent events to open pages."""

from collections.abc import AsyncIterator
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from temper_core import extend_exchange
from temper_plugin_dashboard.fleet.guarding import Guard, refusal

MOST = 128
PIECE_S = 60.0
"""How long a reader may take for a piece."""
KIND = "text/event-stream"


class Streams:
    """Sends at most ``MOST`` streams at a time. Each ends with the session that it is of."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.open = 0
        """The number of open streams."""

    def answer(self, request: Request, pieces: AsyncIterator[bytes]) -> Response:
        """Return an answer that sends *pieces* as they come."""
        if self.open >= MOST:
            message = f"{MOST} streams are open already"
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, message)
        return StreamingResponse(self._sent(request, pieces), media_type=KIND)

    async def _sent(self, request: Request, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            async for piece in pieces:
                if not self._guard.is_open(request):
                    return
                extend_exchange(request.scope, PIECE_S)
                yield piece
        finally:
            self.open -= 1
