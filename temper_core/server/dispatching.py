"""Answers the requests for one path: reads, authorizes, calls the endpoint, and sends."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import structlog
from attrs import frozen

from temper_core.errors import MachineError, PluginError
from temper_core.http.asgi import Receive, Scope, Send
from temper_core.http.client_network import client_network
from temper_core.http.protocol import HEAD_TOO_LARGE, LARGEST_HEAD_BYTES
from temper_core.records.endpoints import Endpoint, Request, Requester
from temper_core.server.answers import (
    BAD_REQUEST,
    NOT_FOUND,
    UNAVAILABLE,
    error_reply,
    message_of,
    outcome_of,
    respond_guarded,
    respond_trusted,
)
from temper_core.server.authorizer import Authorizer
from temper_core.server.bodies import BodyBudget
from temper_core.server.http_request import HttpRequest, Refusal
from temper_core.server.lanes import Lanes
from temper_core.server.replies import Reply
from temper_core.server.sending import StreamSender, send_head, send_whole, until_gone
from temper_core.server.streams import Stream, Streams
from temper_core.server.table import PROBES, ServedEndpoint, parameters_in
from temper_core.server.view import AgentView

LONGEST_LINE = 200
METHOD_NOT_ALLOWED = 405
AGAIN_S = "5"
_WITHOUT_BODY = ("GET", "HEAD")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class ListenerParts:
    """The objects that the requests over one listener share."""

    lanes: Lanes
    streams: Streams
    doorkeeper: Authorizer
    bodies: BodyBudget


class Dispatcher:
    """Answers the methods of one path. An ASGI application."""

    def __init__(
        self, methods: Mapping[str, ServedEndpoint], view: AgentView, shared: ListenerParts
    ) -> None:
        self._methods = methods
        self._view = view
        self._shared = shared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        http = HttpRequest(scope, receive)
        served = self._served(http)
        requester = self._shared.doorkeeper.requester(http)
        if served.endpoint.acts:
            reply = await self._act(served, http, requester)
        else:
            reply = await self._ask(served, http, requester)
        if reply.pieces is None:
            await send_whole(reply, send)
        elif http.method == "HEAD":
            await self._close(served, reply)
            await send_head(reply, send)
        else:
            await self._send_pieces(served, reply, scope, receive, send)

    def _served(self, http: HttpRequest) -> ServedEndpoint:
        if _head_bytes(http) > LARGEST_HEAD_BYTES:
            message = f"path, query and headers are larger than {LARGEST_HEAD_BYTES} bytes"
            raise Refusal(HEAD_TOO_LARGE, message)
        served = self._methods.get(http.method)
        if served is None and http.method == "HEAD":
            served = self._methods.get("GET")
        if served is None:
            also = {"HEAD"} if "GET" in self._methods else set()
            allowed = ", ".join(sorted({*self._methods, *also}))
            raise Refusal(METHOD_NOT_ALLOWED, headers={"allow": allowed})
        return served

    async def _act(self, served: ServedEndpoint, http: HttpRequest, requester: Requester) -> Reply:
        """Call an endpoint that acts if *requester* may, and record the outcome in the audit."""
        line = _line(http)
        try:
            self._shared.doorkeeper.require_right_to_act(http, requester)
            reply = await self._ask(served, http, requester)
        except Refusal as error:
            self._view.audit(line, requester, f"{error.status} {error.message}")
            raise
        is_series = served.endpoint.is_series
        self._view.audit(line, requester, outcome_of(reply), is_series=is_series)
        return reply

    async def _ask(self, served: ServedEndpoint, http: HttpRequest, requester: Requester) -> Reply:
        if served.lane is not PROBES:  # a kubelet may be given any name to ask for
            self._shared.doorkeeper.require_known_host(http)
        query = _parameters(served, http)
        if http.method in _WITHOUT_BODY:
            asked = self._request(http, query, b"", requester)
            return await self._answer(served, asked, http.receive)
        async with self._shared.bodies.read(http, served.endpoint.largest_body_bytes) as content:
            asked = self._request(http, query, content, requester)
            return await self._answer(served, asked, http.receive)

    def _request(
        self, http: HttpRequest, query: Mapping[str, str], content: bytes, requester: Requester
    ) -> Request:
        headers = _headers(http)
        snapshot, path = self._view.snapshot(), http.path
        return Request(query, snapshot, content, http.method, path, headers, requester)

    async def _answer(self, served: ServedEndpoint, asked: Request, receive: Receive) -> Reply:
        call: partial[Reply] = (
            partial(respond_guarded, served.plugin, self._view.call, served.endpoint, asked)
            if served.plugin
            else partial(respond_trusted, served.endpoint, asked)
        )
        try:
            network = client_network(asked.requester.address)
            # A request that acts is carried out even if its client did not wait.
            leaving = None if served.endpoint.acts else partial(until_gone, receive)
            return await self._shared.lanes.run(served.lane, call, network, leaving)
        except MachineError as error:
            return error_reply(UNAVAILABLE, message_of(error))

    async def _send_pieces(
        self, served: ServedEndpoint, reply: Reply, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            stream = self._open(served, reply, scope)
        except MachineError as error:
            await self._close(served, reply)
            refusal = error_reply(UNAVAILABLE, str(error), is_plugins=bool(served.plugin))
            head = (*refusal.head, ("retry-after", AGAIN_S))
            await send_whole(Reply(refusal.status, head, refusal.content), send)
            return
        idle_s = self._shared.streams.idle_s
        await StreamSender(stream, scope, receive, send, idle_s).run(reply)

    def _open(self, served: ServedEndpoint, reply: Reply, scope: Scope) -> Stream:
        part = _stream_part(served.endpoint)
        why_lost = self._view.why_lost(served.plugin, part) if served.plugin else ""
        if why_lost:
            raise MachineError(f"the {part} of plugin {served.plugin!r} is set aside: {why_lost}")
        on_end = partial(self._note_end, served, part)
        network = client_network((scope.get("client") or ("",))[0])
        return self._shared.streams.open(reply.pieces or (), f"temper-{part}", on_end, network)

    def _note_end(self, served: ServedEndpoint, part: str, failure: str, is_hung: bool) -> None:
        if served.plugin:
            self._view.note_end(served.plugin, part, failure, is_hung=is_hung)
        elif failure:
            log.warning("stream_failed", endpoint=served.endpoint.path, reason=failure)

    async def _close(self, served: ServedEndpoint, reply: Reply) -> None:
        """Close unread pieces in their endpoint's lane, since closing runs a plugin's code."""
        part, close = _stream_part(served.endpoint), partial(_close, reply.pieces)
        call = partial(self._view.call, served.plugin, close, part=part) if served.plugin else close
        with suppress(MachineError, PluginError):
            await self._shared.lanes.run(served.lane, call)


def _close(pieces: object) -> None:
    close = getattr(pieces, "close", None)
    if close is not None:
        close()


def _stream_part(endpoint: Endpoint) -> str:
    return f"stream of endpoint {endpoint.name}"


def _line(http: HttpRequest) -> str:
    """Return method and path, percent-encoded as received, hence without control characters."""
    path: bytes = http.scope["raw_path"]
    return f"{http.method} {path.decode('ascii', 'replace')}"[:LONGEST_LINE]


def _head_bytes(http: HttpRequest) -> int:
    # The protocol's own bound counts only the bytes that it has to wait for.
    headers = sum(len(name) + len(value) for name, value in http.scope["headers"])
    return headers + len(http.scope["raw_path"]) + len(http.scope["query_string"])


def _headers(http: HttpRequest) -> dict[str, str]:
    """Return the headers by name, without the token. Endpoints see only the token's name."""
    headers: dict[str, str] = {}
    for name, value in http.headers:
        if name != "authorization":
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _parameters(served: ServedEndpoint, http: HttpRequest) -> dict[str, str]:
    query = http.query
    in_path = parameters_in(served.endpoint.path)
    allowed = [name for name in served.endpoint.parameters if name not in in_path]
    for name in query:
        if name not in allowed:
            names = ", ".join(allowed) or "none"
            raise Refusal(BAD_REQUEST, f"unknown query parameter {name!r}; allowed are: {names}")
    path_parameters: dict[str, str] = http.scope["path_params"]
    for value in path_parameters.values():
        _require_plain(value)
    return {**query, **path_parameters}


def _require_plain(value: str) -> None:
    """Reject a path parameter that could lead an endpoint out of its folder of files."""
    segments = value.split("/")
    is_odd = not value.isprintable() or "\\" in value
    if is_odd or not {".", ".."}.isdisjoint(segments) or (len(segments) > 1 and not all(segments)):
        raise Refusal(NOT_FOUND)
