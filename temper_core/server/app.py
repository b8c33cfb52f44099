"""The ASGI application of one listener: routes the table, and answers refused requests."""

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from temper_core.server.answers import BAD_REQUEST, error_answer
from temper_core.server.dispatching import METHOD_NOT_ALLOWED, Dispatcher, ListenerParts
from temper_core.server.headers import NOT_KEPT
from temper_core.server.table import Table, in_order
from temper_core.server.view import AgentView

FIRST_PARTY: Mapping[str, str] = {"/violations": "linter", "/wakes": "tracer"}
"""The paths of first-party plugins, and the extra that installs each."""


def build_app(table: Table, view: AgentView, shared: ListenerParts) -> Starlette:
    """Route every path of *table*: the core's own first, then the most specific.

    The first matching path gets the request, whatever its method. It answers 405 for a method
    without an endpoint, even if a later path has one.
    """
    routes = [Route(path, Dispatcher(table[path], view, shared)) for path in in_order(table)]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _say_refusal, ClientDisconnect: _say_nothing},
    )
    app.router.redirect_slashes = False
    return app


async def _say_refusal(http: HttpRequest, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    answer = error_answer(error.status_code, _refusal(http, error))
    headers = {"content-type": answer.media_type, "cache-control": NOT_KEPT}
    return Response(answer.content, answer.status, {**headers, **(error.headers or {})})


def _refusal(http: HttpRequest, error: HTTPException) -> str:
    if error.status_code == METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "")
        return f"{http.scope['path']} does not take {http.method}; allowed are: {allowed}"
    if error.detail == "Not Found":
        path = http.scope["path"]
        return f"there is no {path} here{_plugin_of(path)}; /index lists what there is"
    return error.detail


def _plugin_of(path: str) -> str:
    """Return which first-party plugin serves *path* and how to install it, empty for others."""
    plugin = FIRST_PARTY.get(path)
    if plugin is None:
        return ""
    return f"; it is of the plugin {plugin!r}: pip install 'temper-agent[{plugin}]'"


async def _say_nothing(_: HttpRequest, __: Exception) -> Response:
    """Return an empty response for a client that has disconnected."""
    return Response(status_code=BAD_REQUEST)
