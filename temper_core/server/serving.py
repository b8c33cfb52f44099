"""The server's thread: one event loop for all listening sockets."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import socket as Socket  # noqa: N812 - a field has the name

import structlog
from attrs import frozen

from temper_core import __version__
from temper_core.errors import MachineError
from temper_core.http.bounded_server import BoundedServer
from temper_core.http.bounds import Bounds
from temper_core.metrics.scraper import Scraper
from temper_core.server.acting_endpoint import acting_endpoint
from temper_core.server.app import App
from temper_core.server.authorizer import Authorizer
from temper_core.server.bodies import BodyBudget
from temper_core.server.dispatching import ListenerParts
from temper_core.server.endpoints import CoreEndpoints
from temper_core.server.hosts import KnownHosts
from temper_core.server.index import describing
from temper_core.server.lanes import Lanes
from temper_core.server.streams import Streams
from temper_core.server.table import Table, serve_all
from temper_core.server.token import Token
from temper_core.server.view import AgentView

START_S = 30.0
STOP_S = 10.0
LOOK_S = 0.1
BIND_AGAIN_S = 5.0
"""Seconds between two attempts to listen on an address that another process uses."""
HEADERS = [
    ("server", f"temper/{__version__}"),
    ("x-content-type-options", "nosniff"),
]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Listener:
    """A listening socket, and the bounds of its connections.

    Requests through a trusted socket may act. A *socket* of None is made later by *bind*, which
    returns None as long as another process uses the address.
    """

    socket: Socket | None
    is_trusted: bool
    bounds: Bounds
    bind: Callable[[], Socket | None] = lambda: None


def build_table(view: AgentView, token: Token, series_limit: int) -> Table:
    """Gather all endpoints: the core's, the plugins', and those that describe the table."""
    scraper = Scraper(view, series_limit)
    table: dict[str, Table] = {}
    core = (
        *CoreEndpoints(view, scraper).table(),
        acting_endpoint(token),
        *describing(lambda: table["all"]),
    )
    table["all"] = serve_all(core, view.endpoints())
    return table["all"]


class Serving:
    """The running applications of the agent, one per listener."""

    def __init__(
        self,
        view: AgentView,
        listeners: Sequence[Listener],
        token: Token,
        local: str,
        series_limit: int,
        hosts: KnownHosts,
    ) -> None:
        # Each listener has parts of its own, so that TCP clients never delay the local socket.
        self._shared = [
            ListenerParts(
                Lanes(),
                Streams(listener.bounds.most_streams, listener.bounds.stream_idle_s),
                Authorizer(token, local, listener.is_trusted, hosts),
                BodyBudget(),
            )
            for listener in listeners
        ]
        table = build_table(view, token, series_limit)
        self._kill_switch = table["/safe-mode"]["PUT"].lane
        self._listeners = listeners
        self._started = threading.Event()
        self._servers = [
            BoundedServer(App(table, view, shared), listener.bounds, headers=HEADERS)
            for listener, shared in zip(listeners, self._shared, strict=True)
        ]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="temper-server", daemon=True)

    def start(self) -> None:
        """Begin to answer. Raise MachineError if the thread does not start."""
        for shared in self._shared:
            shared.lanes.start(self._kill_switch)
        self._thread.start()
        for _ in range(int(START_S / LOOK_S)):
            if self._started.wait(LOOK_S):
                return
            if not self._thread.is_alive():
                break
        raise MachineError("the HTTP server did not start")

    def stop(self) -> None:
        """Give requests in progress a moment to finish, then end the thread."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._tell_to_stop)
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                log.warning("server_left_behind", after_s=STOP_S)
        for shared in self._shared:
            shared.streams.close()
            shared.lanes.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as serving:
            for server, listener in zip(self._servers, self._listeners, strict=True):
                serving.create_task(self._serve_on(listener, server))
            for server, listener in zip(self._servers, self._listeners, strict=True):
                if listener.socket is not None:
                    await server.wait_begun()
            self._started.set()

    async def _serve_on(self, listener: Listener, server: BoundedServer) -> None:
        listening = listener.socket
        while listening is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(server.wait_stop(), BIND_AGAIN_S)
                return
            # A host name in the address may take the resolver's time.
            listening = await asyncio.to_thread(listener.bind)
        await server.serve(sockets=[listening])

    def _tell_to_stop(self) -> None:
        for shared in self._shared:
            shared.streams.leave()
        for server in self._servers:
            server.tell_to_stop()
