"""The agent's HTTP server on TCP and on the local socket. It removes its socket at the end."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

import structlog
from attrs import evolve

from temper_core.errors import MachineError
from temper_core.http.address import Address
from temper_core.http.bounds import Bounds
from temper_core.http.listener import AddressInUseError
from temper_core.server.hosts import known_hosts
from temper_core.server.sockets import LocalSocket, bind_local, bind_tcp
from temper_core.server.view import AgentView
from temper_core.settings.models import ServerSettings

if TYPE_CHECKING:
    from temper_core.server.serving import Serving
    from temper_core.server.token import Token

REST_S = 75
"""Seconds that a connection may be idle after an answer. This is longer than the usual scrape
interval, since a new connection costs half as much as the scrape itself."""
BOUNDS = Bounds(rest_s=REST_S, most_open=64, most_waiting=64, stop_s=1)
MOST_OPEN_LOCALLY = 32
SERIES_LIMIT = 5_000

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class AgentServer:
    """Serves *view*.

    ``series_limit`` bounds ``/metrics``. ``bounds`` limits the connections. The local socket allows
    fewer of them. ``node`` is the node's name, which requests over TCP may call the agent by.
    """

    def __init__(
        self,
        view: AgentView,
        settings: ServerSettings,
        *,
        series_limit: int = SERIES_LIMIT,
        bounds: Bounds = BOUNDS,
        node: str = "",
    ) -> None:
        self._view = view
        self._settings = settings
        self._series_limit = series_limit
        self._bounds = bounds
        self._node = node
        self._address: Address | None = None
        self._local: LocalSocket | None = None
        self._serving: Serving | None = None
        self._tcp: socket | None = None
        self._occupied = ""

    @property
    def defect(self) -> str:
        """Why TCP is not served, or an empty text."""
        return self._occupied

    @property
    def address(self) -> Address | None:
        """The TCP address, with the chosen port in place of 0, or None without TCP."""
        return self._address

    def bind(self) -> None:
        """Listen without answering yet. Connections wait until ``start``.

        A TCP port on which another process listens is a defect if the local socket is served: no
        user of the host may keep the agent from enforcing by taking its port. The agent tries the
        port again until it is free.

        Raises MachineError if it cannot listen.
        """
        address = self._settings.address
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._local = self._bind_local(is_required=address is None)
            if address:
                self._bind_tcp(address)
            undo.pop_all()

    def start(self) -> None:
        """Begin to answer. Calls ``bind`` first if necessary, and raises as ``bind`` does."""
        if self._local is None and self._tcp is None:
            self.bind()
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._serving = self._serve(self._tcp)
            self._serving.start()
            undo.pop_all()

    def stop(self) -> None:
        """Stop answering, within seconds, and remove the local socket."""
        if self._serving is not None:
            self._serving.stop()
            self._serving = None
        if self._tcp is not None:
            self._tcp.close()
            self._tcp = None
        if self._local is not None:
            self._local.socket.close()
            self._local.remove()
            self._local = None
        self._address = None
        self._occupied = ""

    def _bind_tcp(self, address: Address) -> socket | None:
        try:
            self._tcp = bind_tcp(address)
        except AddressInUseError as error:
            if self._local is None:
                raise
            if not self._occupied:
                log.warning("tcp_not_served", address=str(address), reason=str(error))
            self._occupied = f"server: {error}"
            return None
        host, port = self._tcp.getsockname()[:2]
        self._address = Address(host, port)
        if self._occupied:
            log.info("tcp_served", address=str(self._address))
        self._occupied = ""
        return self._tcp

    def _bind_local(self, *, is_required: bool) -> LocalSocket | None:
        if not self._settings.socket:
            return None
        path = Path(self._settings.socket)
        try:
            return bind_local(path)
        except OSError as error:
            reason = error.strerror or str(error)
            if is_required:
                raise MachineError(
                    f"cannot listen on {path}: {reason}; see [server] socket"
                ) from error
            # An agent without root still observes and answers over TCP.
            log.warning("local_socket_not_served", path=str(path), reason=reason)
            return None

    def _serve(self, tcp: socket | None) -> "Serving":
        from temper_core.server.serving import Listener, Serving  # noqa: PLC0415 - slow

        listeners: list[Listener] = []
        if self._local is not None:
            few = MOST_OPEN_LOCALLY
            bounds = evolve(self._bounds, most_open=few, most_waiting=few)
            listeners.append(Listener(self._local.socket, True, bounds))
        local = self._settings.socket
        hosts = [*self._settings.hosts, self._node]
        if address := self._settings.address:
            hosts.append(address.host)
            listeners.append(Listener(tcp, False, self._bounds, partial(self._bind_tcp, address)))
        return Serving(
            self._view, listeners, self._token(), local, self._series_limit, known_hosts(hosts)
        )

    def _token(self) -> "Token":
        from temper_core.server.token import Token  # noqa: PLC0415 - with the other slow ones

        path = self._settings.token_file
        token = Token(Path(path) if path else None)
        if path:
            try:
                token.tokens()
            except MachineError as error:
                # The agent starts without a token. Each request that needs one gets this error.
                log.warning("token_not_usable", reason=str(error))
        return token
