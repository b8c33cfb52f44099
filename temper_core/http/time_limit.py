"""A limit on the time of a request as a whole, its answer's head included."""

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import httpx2


class TimeLimit:
    """Shuts the connection of *request* down when the block has lasted *seconds*.

    httpx2 limits the wait for each piece only, so that a server could send one byte at a time. The
    block then raises OSError.
    """

    def __init__(self, request: "httpx2.Request", seconds: float) -> None:
        self._seconds = seconds
        self._is_over = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        request.extensions = {**request.extensions, "trace": self._note}

    def __enter__(self) -> Self:
        """Begin."""
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise OSError in place of the block's error if the time is over."""
        self._timer.cancel()
        if self._is_over and isinstance(error, Exception):
            raise OSError(f"no whole answer within {self._seconds:.0f} s") from error

    def _note(self, event: str, told: Mapping[str, Any]) -> None:
        """Take the socket of a new connection (the extension ``trace`` of httpx2)."""
        if event.startswith("connection.connect_") and event.endswith(".complete"):
            self._sockets.append(told["return_value"].get_extra_info("socket"))
            if self._is_over:
                self._end()

    def _end(self) -> None:
        self._is_over = True
        for each in tuple(self._sockets):
            with suppress(OSError):  # it is closed already
                each.shutdown(socket.SHUT_RDWR)
