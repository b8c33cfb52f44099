"""The agent's HTTP server: listens on TCP and on the local socket, and cleans up after itself."""

from contextlib import ExitStack
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

import structlog

from temper_core.errors import InputError, MachineError
from temper_core.http.address import Address, parse_address
from temper_core.server.sockets import LocalSocket, bind_local, bind_tcp
from temper_core.server.view import AgentView
from temper_core.settings.models import ServerSettings

if TYPE_CHECKING:
    from temper_core.server.serving import Serving
    from temper_core.server.token import Token

HEAD_S = 10.0
EXCHANGE_S = 30.0
MOST_OPEN_OVER_TCP = 64
MOST_OPEN_LOCALLY = 32
SERIES_LIMIT = 5_000

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class AgentServer:
    """Serves *view*.

    ``series_limit`` bounds ``/metrics``; ``head_s`` and ``exchange_s`` seconds are what a request's
    head, and a request with its answer, may take, after which the server hangs up.
    """

    def __init__(
        self,
        view: AgentView,
        settings: ServerSettings,
        *,
        series_limit: int = SERIES_LIMIT,
        head_s: float = HEAD_S,
        exchange_s: float = EXCHANGE_S,
    ) -> None:
        self._view = view
        self._settings = settings
        self._series_limit = series_limit
        self._head_s = head_s
        self._exchange_s = exchange_s
        self._address: Address | None = None
        self._local: LocalSocket | None = None
        self._serving: Serving | None = None

    @property
    def address(self) -> Address | None:
        """Where it listens for TCP, with the port that was chosen for 0; None if it does not."""
        return self._address

    def start(self) -> None:
        """Listen and begin to answer.

        Raises InputError for an address that is none, or where neither address nor socket is given;
        MachineError where it cannot listen.
        """
        if not (self._settings.listen or self._settings.socket):
            raise InputError(
                "server.listen and server.socket are both empty: nobody could ask the agent; "
                "give it one of them"
            )
        wanted = parse_address(self._settings.listen) if self._settings.listen else None
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._local = self._bind_local(is_required=wanted is None)
            tcp = undo.enter_context(bind_tcp(wanted)) if wanted else None
            self._serving = self._serve(tcp)
            self._serving.start()
            undo.pop_all()
        self._address = _address_of(tcp)

    def stop(self) -> None:
        """Stop answering, within seconds, and remove the local socket."""
        if self._serving is not None:
            self._serving.stop()
            self._serving = None
        if self._local is not None:
            self._local.socket.close()
            self._local.remove()
            self._local = None
        self._address = None

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
            # An agent without root still observes, and answers over TCP.
            log.warning("local_socket_not_served", path=str(path), reason=reason)
            return None

    def _serve(self, tcp: socket | None) -> "Serving":
        from temper_core.http.protocol import Timing  # noqa: PLC0415 - slow
        from temper_core.server.serving import Limits, Listener, Serving  # noqa: PLC0415 - slow

        listeners: list[Listener] = []
        if self._local is not None:
            listeners.append(Listener(self._local.socket, True, MOST_OPEN_LOCALLY))
        if tcp is not None:
            listeners.append(Listener(tcp, False, MOST_OPEN_OVER_TCP))
        timing = Timing(self._head_s, self._exchange_s)
        limits = Limits(self._series_limit, timing)
        return Serving(self._view, listeners, self._token(), self._settings.socket, limits)

    def _token(self) -> "Token":
        from temper_core.server.token import Token  # noqa: PLC0415 - with the other slow ones

        path = self._settings.token_file
        token = Token(Path(path) if path else None)
        if path:
            try:
                token.secret()
            except MachineError as error:
                # Whoever needs it is told again; the agent goes on without.
                log.warning("token_not_usable", reason=str(error))
        return token


def _address_of(tcp: socket | None) -> Address | None:
    if tcp is None:
        return None
    host, port = tcp.getsockname()[:2]
    return Address(host, port)
