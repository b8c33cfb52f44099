"""Sends replies, whole or piece by piece."""

import asyncio
from contextlib import suppress

from attrs import frozen

from temper_core.http.asgi import Receive, Scope, Send
from temper_core.http.protocol import BoundedProtocol, connection_of
from temper_core.server.pace import StreamRate
from temper_core.server.replies import NO_CONTENT, NOT_MODIFIED, Reply
from temper_core.server.streams import GRACE_S, Stream, StreamFailed, StreamLeft

COMMENT = b":\n\n"
"""The comment that an event stream sends for an empty piece (WHATWG HTML, 9.2.6)."""


async def send_whole(reply: Reply, send: Send) -> None:
    """Send a reply with its content in one piece."""
    await _send_head(reply, len(reply.content), send)
    content = b"" if _is_bodiless(reply) else reply.content
    await send({"type": "http.response.body", "body": content})


async def send_head(reply: Reply, send: Send) -> None:
    """Send the head of a reply in pieces, in answer to ``HEAD``."""
    await _send_head(reply, reply.length, send)
    await send({"type": "http.response.body", "body": b""})


async def _send_head(reply: Reply, length: int | None, send: Send) -> None:
    head = reply.head
    if length is not None and not _is_bodiless(reply):
        head = (*head, ("content-length", str(length)))
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head]
    await send({"type": "http.response.start", "status": reply.status, "headers": encoded})


def _is_bodiless(reply: Reply) -> bool:
    return reply.status in (NO_CONTENT, NOT_MODIFIED)


async def until_gone(receive: Receive) -> None:
    """Wait until the client has disconnected. Unread parts of its body are dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass


@frozen
class StreamSender:
    """Sends the pieces of *stream* for the request of *scope*, as fast as the client takes them.

    When the stream fails, the connection is closed, so that the client notices the truncation.
    """

    stream: Stream
    scope: Scope
    receive: Receive
    send: Send
    idle_s: float

    async def run(self, reply: Reply) -> None:
        """Send until the stream ends or fails, the client disconnects or the agent stops."""
        disconnect = asyncio.get_running_loop().create_task(self._wait_until_gone())
        try:
            await self._run(reply)
        except StreamLeft:
            await self._end(reply)
        except StreamFailed as failed:
            self.stream.fail(str(failed))
            self._connection.hang_up()
        finally:
            self.stream.leave()
            if self._connection.is_gone:
                # uvicorn reports an unfinished answer as a bug unless it has seen the disconnect.
                await disconnect
            disconnect.cancel()
            with suppress(asyncio.CancelledError):
                await disconnect

    @property
    def _connection(self) -> BoundedProtocol:
        return connection_of(self.scope)

    async def _run(self, reply: Reply) -> None:
        pace = StreamRate(asyncio.get_running_loop().time())
        await _send_head(reply, reply.length, self.send)
        while (piece := await self._next()) is not None:
            if reply.is_event_stream:
                piece = piece or COMMENT
            await self._send_piece(piece, pace)
        await self.send({"type": "http.response.body", "body": b""})

    async def _next(self) -> bytes | None:
        self._connection.extend(self.idle_s + GRACE_S)
        return await self.stream.piece()

    async def _send_piece(self, piece: bytes, pace: StreamRate) -> None:
        if piece:
            self._connection.extend(self.idle_s)
            await self.send({"type": "http.response.body", "body": piece, "more_body": True})
        wait_s = pace.wait_s(len(piece), asyncio.get_running_loop().time())
        if pace.is_flood:
            raise StreamFailed("floods: it sends more pieces than there may be")
        if wait_s:
            await asyncio.sleep(wait_s)

    async def _end(self, reply: Reply) -> None:
        """End an answer early. Only an event stream is valid without its rest."""
        if reply.is_event_stream and not self._connection.is_gone:
            await self.send({"type": "http.response.body", "body": b""})
        else:
            self._connection.hang_up()

    async def _wait_until_gone(self) -> None:
        await until_gone(self.receive)
        self.stream.leave()
