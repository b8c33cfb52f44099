"""Access to read: sessions of a browser, and the headers that keep other sites out.

A browser sends a cookie to every port of a host name, where other servers may listen. So a session
has two halves: a cookie, and a key that the page keeps in the storage of its origin and sends as a
header.
"""

import json
import time
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from itertools import islice

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from temper_core import InputError, parse_tenant_json
from temper_plugin_dashboard.fleet.sessions import LONGEST_S, Sessions
from temper_serving.answers import JSON
from temper_serving.bodies import BodyBudget
from temper_serving.clients import address_of

COOKIE = "temper_session"
HEADER = "temper-session"
"""The key in a request, and ``ended`` in an answer to one without an open session."""
OWN_PATH = None
"""A browser takes the path of the login without its last part, so with the prefix of a proxy."""
MOST_COOKIES = 8
"""Cookies of one name that are looked at. Other servers of the host may have set some."""
LARGEST_BODY = 8 * 1024
REPEAT_S = 60.0
"""Seconds between two lines of the log about refused logins, which any client can cause."""
SAME_ORIGIN = ("same-origin", "none")
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}

Handler = Callable[[Request], Awaitable[Response]]
log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SafeHeaders:
    """An ASGI application in front of another. It adds ``HEADERS`` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                added = [
                    (name.encode(), value.encode())
                    for name, value in HEADERS.items()
                    if name.encode() not in given
                ]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self._app(scope, receive, sent)


class Guard:
    """Begins and ends sessions, and lets requests with an open one pass."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._bodies = BodyBudget(LARGEST_BODY)
        self._logged_at = -REPEAT_S
        self._unlogged = 0

    def is_open(self, request: Request) -> bool:
        """Whether the request is of an open session."""
        return self.session(request) != ""

    def session(self, request: Request) -> str:
        """Return the secret name of the request's session, "" if none is open."""
        key = request.headers.get(HEADER, "")
        names = (cookie + key for cookie in _cookies(request) if cookie and key)
        return next(filter(self._sessions.is_open, names), "")

    def may_be_open(self, request: Request) -> bool:
        """Whether the request for a page, which has no key, has a cookie. Pages tell nothing."""
        return cookie_name(request) in request.cookies

    def guarded(self, handler: Handler) -> Handler:
        """Answer a request without an open session with status 401."""

        async def answered(request: Request) -> Response:
            if not self.is_open(request):
                message = "no session is open: enter the token on the page at /"
                return refusal(HTTPStatus.UNAUTHORIZED, message, headers={HEADER: "ended"})
            return await handler(request)

        return answered

    async def enter(self, request: Request) -> Response:
        """Begin a session for the token of the body, ``{"token": "..."}``."""
        name = self._sessions.begin(await self._token(request))
        address = address_of(request)
        if name is None:
            self._log_refusal(address)
            return refusal(HTTPStatus.FORBIDDEN, "the token is wrong")
        log.info("session_begun", address=address)
        half = len(name) // 2
        response = Response(json.dumps({"key": name[half:]}), media_type=JSON)
        response.set_cookie(
            cookie_name(request),
            name[:half],
            max_age=int(LONGEST_S),
            secure=_is_private(request),
            path=OWN_PATH,
            httponly=True,
            samesite="strict",
        )
        return response

    def _log_refusal(self, address: str) -> None:
        """Log a refused login once in a while, with the number of those between."""
        now = time.monotonic()
        if now - self._logged_at < REPEAT_S:
            self._unlogged += 1
            return
        log.warning("login_refused", address=address, before=self._unlogged)
        self._logged_at, self._unlogged = now, 0

    async def leave(self, request: Request) -> Response:
        """End the session of the request."""
        require_own_page(request)
        if self._sessions.end(self.session(request)):
            log.info("session_ended", address=address_of(request))
        response = Response(b"{}", media_type=JSON)
        response.set_cookie(
            cookie_name(request),
            max_age=0,
            expires=0,
            path=OWN_PATH,
            httponly=True,
            samesite="strict",
        )
        return response

    async def document(self, request: Request, bodies: BodyBudget) -> object:
        """Return the JSON of a body that a page of this server sent. Raises InputError otherwise.

        A form of another site has another type. *bodies* bounds the body.
        """
        require_own_page(request)
        if not request.headers.get("content-type", "").startswith(JSON):
            raise InputError(f"the body must be of the type {JSON}")
        try:
            return parse_tenant_json(await bodies.read(request))
        except ValueError as error:
            raise InputError("the body is not JSON") from error

    async def _token(self, request: Request) -> str:
        document = await self.document(request, self._bodies)
        token = document.get("token") if isinstance(document, dict) else None
        if not isinstance(token, str):
            raise InputError('the body must be {"token": "..."}')
        return token


def cookie_name(request: Request) -> str:
    """Return a name for the port, so that servers at several ports of a host keep their cookies."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isascii() and port.isdigit() else COOKIE


def _cookies(request: Request) -> Iterable[str]:
    """Return the values of the request's cookies of this server's name."""
    start = f"{cookie_name(request)}="
    parts = (part.strip() for part in request.headers.get("cookie", "").split(";"))
    values = (part.removeprefix(start) for part in parts if part.startswith(start))
    return islice(values, MOST_COOKIES)


def refusal(status: int, message: str, **options: dict[str, str]) -> Response:
    """Return an answer as the agents refuse, with the *message* as ``error``."""
    body = json.dumps({"error": " ".join(message.split())}).encode()
    return Response(body, status, media_type=JSON, **options)  # type: ignore[arg-type]  # headers


def require_own_page(request: Request) -> None:
    """Raise InputError for a request that a page of another origin caused.

    Browsers add ``Sec-Fetch-Site`` (Fetch Metadata) and ``Origin`` (RFC 6454).
    """
    site = request.headers.get("sec-fetch-site", SAME_ORIGIN[0])
    origin = request.headers.get("origin", "")
    host = request.headers.get("host", "")
    if site not in SAME_ORIGIN or (origin and origin.partition("://")[2] != host):
        raise InputError("a page of another origin may not do that")


def _is_private(request: Request) -> bool:
    """Whether the browser's connection has TLS, here or at a proxy in front."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
