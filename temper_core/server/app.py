"""The ASGI application: routes the table, reads requests, and decides who may act.

Two are made of one table: the one behind the local socket is trusted, the one behind TCP is not.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from attrs import frozen
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from temper_core.errors import MachineError
from temper_core.records.endpoints import Answer, Request, Requester
from temper_core.server.answers import (
    BAD_REQUEST,
    UNAVAILABLE,
    error_answer,
    message_of,
    respond_guarded,
    respond_trusted,
)
from temper_core.server.lanes import Lanes
from temper_core.server.table import Served, Table, parameters_in
from temper_core.server.token import Token
from temper_core.server.view import AgentView

LARGEST_HEAD_BYTES = 16 * 1024
LARGEST_BODY_BYTES = 64 * 1024
BODY_DEADLINE_S = 10.0
UNAUTHORISED = 401
FORBIDDEN = 403
METHOD_NOT_ALLOWED = 405
TIMED_OUT = 408
TOO_LARGE = 413
HEAD_TOO_LARGE = 431


@frozen
class Doorkeeper:
    """Who may act: everyone behind the local socket, and over TCP who has the token."""

    token: Token
    socket: str
    is_trusted: bool

    def check(self, request: HttpRequest) -> Requester:
        """Return who asks, ``socket`` or ``token``; raise HTTPException for anybody else."""
        if self.is_trusted:
            return Requester("socket")
        try:
            known = self.token.is_given_by(request.headers.get("authorization", ""))
        except MachineError as error:
            local = f"use the local socket {self.socket}" if self.socket else "set [server] socket"
            remedy = f"{local}, or give [server] a token_file"
            raise HTTPException(FORBIDDEN, f"nobody may act over TCP: {error}; {remedy}") from error
        if not known:
            raise HTTPException(
                UNAUTHORISED,
                "acting needs the bearer token of [server] token_file, or the local socket",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return Requester("token")


@frozen
class Dispatcher:
    """Answers the methods of one path."""

    methods: Mapping[str, Served]
    view: AgentView
    lanes: Lanes
    doorkeeper: Doorkeeper

    async def answer(self, http: HttpRequest) -> Response:
        """Read one request, ask its endpoint in a thread, and send what it says."""
        if _head_bytes(http) > LARGEST_HEAD_BYTES:
            message = f"path, query and headers are larger than {LARGEST_HEAD_BYTES} bytes"
            raise HTTPException(HEAD_TOO_LARGE, message)
        served = self.methods["GET" if http.method == "HEAD" else http.method]
        requester = self.doorkeeper.check(http) if served.endpoint.acts else Requester()
        query = _parameters(served, http)
        content = b"" if served.endpoint.method == "GET" else await _body(http)
        asked = Request(
            query,
            self.view.snapshot(),
            content,
            http.method,
            http.url.path,
            dict(http.headers),
            requester,
        )
        try:
            answer = await self.lanes.run(served.lane, self._call(served, asked))
        except MachineError as error:
            answer = error_answer(UNAVAILABLE, message_of(error))
        return _response(answer)

    def _call(self, served: Served, asked: Request) -> "partial[Answer]":
        if served.plugin:
            return partial(respond_guarded, served.plugin, self.view.call, served.endpoint, asked)
        return partial(respond_trusted, served.endpoint, asked)


def build_app(table: Table, view: AgentView, lanes: Lanes, doorkeeper: Doorkeeper) -> Starlette:
    """Route every path of *table*; paths without parameters come first."""
    ordered = sorted(table.items(), key=lambda item: "{" in item[0])
    routes = [
        Route(
            path,
            Dispatcher(methods, view, lanes, doorkeeper).answer,
            methods=list(methods),
        )
        for path, methods in ordered
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _say_refusal, ClientDisconnect: _say_nothing},
    )
    app.router.redirect_slashes = False
    return app


def _head_bytes(http: HttpRequest) -> int:
    # The protocol's own bound counts only what it has to wait for.
    headers = sum(len(name) + len(value) for name, value in http.headers.raw)
    return headers + len(http.scope["raw_path"]) + len(http.scope["query_string"])


def _parameters(served: Served, http: HttpRequest) -> dict[str, str]:
    given = dict(http.query_params)
    in_path = parameters_in(served.endpoint.path)
    allowed = [name for name in served.endpoint.parameters if name not in in_path]
    for name in given:
        if name not in allowed:
            known = ", ".join(allowed) or "none"
            raise HTTPException(
                BAD_REQUEST, f"unknown query parameter {name!r}; allowed are: {known}"
            )
    return {**given, **http.path_params}


async def _body(http: HttpRequest) -> bytes:
    """Read the body, as far as it is small and comes in time."""
    received = bytearray()
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            async for chunk in http.stream():
                received += chunk
                if len(received) > LARGEST_BODY_BYTES:
                    raise HTTPException(
                        TOO_LARGE, f"the body is larger than {LARGEST_BODY_BYTES} bytes"
                    )
    except TimeoutError as error:
        message = f"the body did not arrive within {BODY_DEADLINE_S:.0f} s"
        raise HTTPException(TIMED_OUT, message) from error
    return bytes(received)


def _response(answer: Answer) -> Response:
    return Response(answer.content, answer.status, headers={"content-type": answer.media_type})


async def _say_refusal(http: HttpRequest, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    response = _response(error_answer(error.status_code, _refusal(http, error)))
    response.headers.update(error.headers or {})
    return response


def _refusal(http: HttpRequest, error: HTTPException) -> str:
    if error.status_code == METHOD_NOT_ALLOWED:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        return f"{http.url.path} does not take {http.method}; allowed are: {allowed}"
    if error.detail == "Not Found":
        return f"there is no {http.url.path} here; / lists what there is"
    return error.detail


async def _say_nothing(_: HttpRequest, __: Exception) -> Response:
    """Answer a caller who has hung up; nobody will read it."""
    return Response(status_code=BAD_REQUEST)
