"""The thread that serves: one event loop for every socket that is listened on."""

import asyncio
import threading
from collections.abc import Sequence
from socket import socket

import structlog
from attrs import frozen
from starlette.applications import Starlette

from temper_core.errors import MachineError
from temper_core.http.bounded_server import StoppableServer
from temper_core.http.protocol import Timing, configure
from temper_core.server.app import Doorkeeper, build_app
from temper_core.server.endpoints import CoreEndpoints
from temper_core.server.index import describing
from temper_core.server.lanes import Lanes
from temper_core.server.metrics import Scraper
from temper_core.server.table import Table, serve_all
from temper_core.server.token import Token
from temper_core.server.view import AgentView

START_S = 30.0
STOP_S = 10.0
LOOK_S = 0.1

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Listener:
    """A socket that is listened on, and how many connections it may have at a time.

    Whoever comes through a trusted one may act.
    """

    socket: socket
    is_trusted: bool
    most_open: int


@frozen
class Limits:
    """How much a scrape may hold, and how long a request may take."""

    series: int
    timing: Timing


def build_table(view: AgentView, limits: Limits) -> Table:
    """Gather what is served: the core's endpoints, the plugins', and what describes them."""
    scraper = Scraper(view, limits.series)
    table: dict[str, Table] = {}
    core = (*CoreEndpoints(view, scraper).table(), *describing(lambda: table["all"]))
    table["all"] = serve_all(core, view.endpoints())
    return table["all"]


class Serving:
    """The agent's applications at work, one per listener."""

    def __init__(
        self,
        view: AgentView,
        listeners: Sequence[Listener],
        token: Token,
        local: str,
        limits: Limits,
    ) -> None:
        # Whoever asks over TCP never delays the local socket.
        self._lanes = [Lanes() for _ in listeners]
        table = build_table(view, limits)
        self._listeners = listeners
        self._waiting = len(listeners)
        self._started = threading.Event()
        self._servers = [
            self._server(
                build_app(table, view, lanes, Doorkeeper(token, local, each.is_trusted)),
                limits.timing,
                each.most_open,
            )
            for each, lanes in zip(listeners, self._lanes, strict=True)
        ]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="temper-server", daemon=True)

    def start(self) -> None:
        """Begin to answer; raise MachineError where the thread does not come up."""
        self._thread.start()
        for _ in range(int(START_S / LOOK_S)):
            if self._started.wait(LOOK_S):
                return
            if not self._thread.is_alive():
                break
        raise MachineError("the HTTP server did not start")

    def stop(self) -> None:
        """Let requests in progress end for a moment, then end the thread."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._tell_to_stop)
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                log.warning("server_left_behind", after_s=STOP_S)
        for lanes in self._lanes:
            lanes.close()

    def _server(self, app: Starlette, timing: Timing, most_open: int) -> StoppableServer:
        return StoppableServer(configure(app, timing), most_open, self._one_started)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        pairs = zip(self._servers, self._listeners, strict=True)
        await asyncio.gather(*(server.serve(sockets=[each.socket]) for server, each in pairs))

    def _one_started(self) -> None:
        self._waiting -= 1
        if self._waiting == 0:
            self._started.set()

    def _tell_to_stop(self) -> None:
        for server in self._servers:
            server.tell_to_stop()
