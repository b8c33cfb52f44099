"""uvicorn's server, made to stop when told and to bound its connections."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import cast

import uvicorn

from temper_core.http.accepting import Acceptor
from temper_core.http.protocol import BoundedProtocol


class StoppableServer(uvicorn.Server):
    """A uvicorn server that sleeps until it is told to stop; uvicorn itself looks all the time.

    It keeps at most *most_open* connections.
    """

    def __init__(
        self, config: uvicorn.Config, most_open: int, on_started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._most_open = most_open
        self._on_started = on_started
        self._told = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept from *sockets*, which listen already."""
        connections = cast("set[BoundedProtocol]", self.server_state.connections)
        acceptors = [
            Acceptor(each, self._make_protocol, connections, self._most_open)
            for each in sockets or ()
        ]
        for acceptor in acceptors:
            acceptor.start()
        # All that uvicorn does with its servers is to close them.
        self.servers = cast("list[asyncio.Server]", acceptors)
        self.started = True

    def _make_protocol(self) -> BoundedProtocol:
        made = cast("type[BoundedProtocol]", self.config.http_protocol_class)
        return made(self.config, self.server_state, self.lifespan.state)

    async def main_loop(self) -> None:
        """Serve until ``tell_to_stop``."""
        await self.on_tick(0)
        self._on_started()
        await self._told.wait()

    def tell_to_stop(self) -> None:
        """End ``serve``; called in the server's own loop."""
        # uvicorn would complain about requests that do not end, which is for lanes to answer.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self.should_exit = True
        self._told.set()
