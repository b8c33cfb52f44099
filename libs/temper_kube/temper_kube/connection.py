"""One HTTP/1.1 connection to the API server, for one thread. Any thread may abort it."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse
from typing import Any, Self, cast

from attrs import frozen

from temper_core import JsonItems, parse_tenant_json
from temper_kube.access import Access
from temper_kube.alarms import Alarm
from temper_kube.credential_programs import Issued
from temper_kube.failures import (
    GONE,
    GoneError,
    RefusalError,
    UnreachableError,
)
from temper_kube.list_pages import Json

CONNECT_S = 5.0
ANSWER_S = 10.0
"""How long each byte is waited for."""
EXCHANGE_S = 30.0
"""How long a single object is waited for in all."""
LARGEST_BYTES = 32 * 1024 * 1024
"""The largest object or event. etcd holds objects of at most 1.5 MiB by default, and the API server
writes ``<``, ``>`` and ``&`` as six characters each."""
LARGEST_LIST_BYTES = 8 * 1024 * 1024 * 1024
"""etcd's largest recommended size. Whoever may create objects could make a lesser bound fail."""
LARGEST_REFUSAL_BYTES = 64 * 1024
"""How much of a refusal is read. An attacker may control the node whose agent sends it."""
REFUSAL_CHARACTERS = 300
FIRST_REFUSAL, UNAUTHORIZED = 300, 401
# A peer that vanishes without closing is noticed within about 25 s, even on an idle connection.
KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 25_000),
)


@frozen
class Content:
    """The body of an answer, with its headers."""

    body: bytes
    headers: HTTPMessage


class Connection:
    """Sends requests to the API server. Failures are UnreachableError or RefusalError.

    A failing credential program raises MachineError. Token and certificates are read for each
    connection, so that expired ones are replaced. A connection whose user is refused is closed.
    """

    def __init__(self, access: Access, timeout_s: float = ANSWER_S) -> None:
        self._source = self._access = access
        self._timeout_s = timeout_s
        self._http: HTTPConnection | None = None
        self._brake: socket.socket | None = None
        self._braking = threading.Lock()
        self._is_aborted = False
        self._is_late = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        media_type: str = "",
        accept: str = "",
        limit_s: float | None = None,
    ) -> Json:
        """Return the parsed answer, which must be complete after *limit_s* or ``EXCHANGE_S``.

        After that the request is not sent any more.
        """
        try:
            with self._limited(EXCHANGE_S if limit_s is None else limit_s):
                response = self._send(method, path, body, media_type, accept)
                return self._parsed(response.read(LARGEST_BYTES + 1))
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise self._unreachable(error) from error

    def content(
        self,
        path: str,
        accept: str = "",
        most_bytes: int = LARGEST_BYTES,
        limit_s: float = EXCHANGE_S,
        *,
        method: str = "GET",
        body: Json | None = None,
    ) -> "Content":
        """Return an answer as it is, which must be complete after *limit_s* seconds.

        *body* is sent as JSON. An answer of more than *most_bytes* is an UnreachableError.
        """
        try:
            with self._limited(limit_s):
                response = self._send(method, path, body, "", accept)
                answer = response.read(most_bytes + 1)
        except (OSError, HTTPException, ValueError) as error:
            raise self._unreachable(error) from error
        if len(answer) > most_bytes:
            raise self._unreachable(ValueError(f"an answer is larger than {most_bytes} bytes"))
        return Content(answer, response.headers)

    def items(
        self, path: str, rest: dict[str, Any], *, accept: str = "", limit_s: float | None = None
    ) -> Iterator[Json]:
        """Request a list. Yield its objects as they arrive, and put its other fields into *rest*.

        No more than one object is in memory. The iterator raises the errors of reading. If it is
        left before its end, the connection is closed. The list has to end within *limit_s*, if
        that is given: whoever may create objects makes it as long as they like.
        """
        try:
            with self._limited(EXCHANGE_S):
                response = self._send("GET", path, None, "", accept)
        except (OSError, HTTPException, ValueError) as error:
            raise self._unreachable(error) from error
        items = JsonItems(response.read, LARGEST_LIST_BYTES, LARGEST_BYTES, errors="replace")
        return self._items(items, rest, limit_s)

    def _items(
        self, list_items: JsonItems, rest: dict[str, Any], limit_s: float | None
    ) -> Iterator[Json]:
        try:
            with nullcontext() if limit_s is None else self._limited(limit_s):
                yield from (item for item in list_items if isinstance(item, dict))
        except GeneratorExit:
            self.close()
            raise
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise self._unreachable(error) from error
        rest.update(list_items.rest)

    def stream(
        self, path: str, *, accept: str = "", begun: Callable[[], None] = lambda: None
    ) -> Iterator[Json]:
        """Yield the events of a watch until the server ends it. *begun* is called at its start.

        The head of the answer must be complete after ``EXCHANGE_S``, and each event within the
        connection's timeout after the one before it.
        """
        try:
            with self._limited(EXCHANGE_S):
                response = self._send("GET", path, None, "", accept)
            begun()
            with self._limited(self._timeout_s, "no event was complete") as alarm:
                while line := response.readline(LARGEST_BYTES + 1):
                    yield self._parsed(line)
                    alarm.postpone()
        except (OSError, HTTPException, ValueError) as error:
            raise self._unreachable(error) from error

    def abort(self) -> None:
        """Make a waiting request of another thread fail at once."""
        with self._braking:
            self._is_aborted = True
            self._shut()

    def _shut(self) -> None:
        if self._brake is not None:
            with suppress(OSError):  # the connection has ended already
                self._brake.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        if self._http is not None:
            self._http.close()
        with self._braking:
            if self._brake is not None:
                self._brake.close()
            self._http = self._brake = None

    @contextmanager
    def _limited(
        self, seconds: float, missed: str = "the answer was not complete"
    ) -> Iterator[Alarm]:
        """Raise TimeoutError after *seconds*, unless the alarm that it yields is postponed.

        The socket's own limit is one of each byte. An answer without a length ends with its
        connection, so that one cut off here looks whole.
        """
        is_late = threading.Event()
        self._is_late = False

        def end() -> None:
            is_late.set()
            with self._braking:
                self._is_late = True
                self._shut()

        alarm = Alarm(seconds, end)
        why = f"{missed} after {seconds:.3g} s"
        try:
            yield alarm
        except (OSError, HTTPException, ValueError) as error:
            if is_late.is_set():
                raise TimeoutError(why) from error
            raise
        finally:
            alarm.cancel()
        if is_late.is_set():
            raise TimeoutError(why)

    def _send(
        self, method: str, path: str, body: Json | None, media_type: str, accept: str
    ) -> HTTPResponse:
        http = self._http
        if http is None or http.sock is None:  # the server closed it after its answer
            self._access = self._source.current()
            issued = self._access.credentials.issued()
            http = self._connect(issued)
        else:
            issued = self._access.credentials.issued()
        text = None if body is None else json.dumps(body).encode()
        headers = self._headers(issued, accept, media_type if text is not None else None)
        http.request(method, self._access.prefix + path, text, headers)
        response = http.getresponse()
        program = self._access.credentials.program
        if response.status == UNAUTHORIZED and program is not None:
            program.refused(issued)
        if response.status >= FIRST_REFUSAL:
            raise self._refusal(response)
        return response

    def _refusal(self, response: HTTPResponse) -> RefusalError:
        text = response.read(LARGEST_REFUSAL_BYTES).decode(errors="replace")
        # An unread rest would be taken for the next answer. Other credentials may need another
        # connection.
        if not response.isclosed() or response.status == UNAUTHORIZED:
            response.close()
            self.close()
        with suppress(ValueError, AttributeError, RecursionError):
            text = parse_tenant_json(text).get("message") or text
        message = " ".join(str(text).split())[:REFUSAL_CHARACTERS]
        if response.status == GONE:
            return GoneError(message)
        retry_after = response.headers.get("Retry-After", "")
        return RefusalError(
            response.status, message, float(retry_after) if retry_after.isdigit() else 0.0
        )

    def _headers(self, issued: Issued, accept: str, content_type: str | None) -> Mapping[str, str]:
        headers = HTTPMessage()  # unlike a dictionary it holds a header more than once
        headers["Accept"] = accept or "application/json"
        headers["User-Agent"] = "temper"
        if content_type is not None:
            headers["Content-Type"] = content_type or "application/json"
        for name, value in self._access.headers(issued).items():
            headers[name] = value
        for name, value in self._access.credentials.impersonation:
            headers[name] = value
        return cast("Mapping[str, str]", headers)  # http.client asks for its items alone

    def _connect(self, issued: Issued) -> HTTPConnection:
        access = self._access
        self.close()
        tls = access.tls(issued) if access.is_tls else None  # it may fail: before there is a socket
        http = HTTPConnection(access.host, access.port, timeout=CONNECT_S)
        http.auto_open = 0  # http.client would reconnect without TLS
        http.connect()
        for level, option, value in KEEP_ALIVE:
            http.sock.setsockopt(level, option, value)
        if tls is not None:
            name = access.credentials.server_name or access.host
            http.sock = tls.wrap_socket(http.sock, server_hostname=name)
        http.sock.settimeout(self._timeout_s)
        self._http = http
        with self._braking:
            # A duplicate of the socket: the response closes the reader's, and shutdown ends TLS.
            self._brake = socket.socket(fileno=os.dup(http.sock.fileno()))
            if self._is_aborted:  # aborted before there was a socket to shut down
                raise UnreachableError("the connection was aborted")
            if self._is_late:
                raise TimeoutError("the connection was made too late")
        return http

    def _parsed(self, text: bytes) -> Json:
        if len(text) > LARGEST_BYTES:
            raise ValueError(f"an answer is larger than {LARGEST_BYTES} bytes")
        table = parse_tenant_json(text)
        if not isinstance(table, dict):
            raise ValueError("the answer is not an object")  # noqa: TRY004 - handled like the rest
        return table

    def _unreachable(self, error: Exception) -> UnreachableError:
        self.close()
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return UnreachableError(f"{self._access.name} does not answer: {reason}")
