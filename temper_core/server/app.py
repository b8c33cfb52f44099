"""The ASGI application of one listener: routes the table, and answers refused requests."""

import re
from contextlib import suppress
from http import HTTPStatus

from temper_core.http.asgi import Receive, Scope, Send
from temper_core.http.rate_limited_log import RateLimitedLog
from temper_core.install_hints import install_command, plugin_with
from temper_core.server.answers import BAD_REQUEST, NOT_FOUND, error_reply
from temper_core.server.dispatching import METHOD_NOT_ALLOWED, Dispatcher, ListenerParts
from temper_core.server.http_request import ClientGone, Refusal
from temper_core.server.replies import Reply
from temper_core.server.sending import send_whole
from temper_core.server.table import Table, in_order, path_pattern
from temper_core.server.view import AgentView

FAILED = 500
LONGEST_PATH = 200
"""Characters of a path in the log."""


class App:
    """Routes every path of *table*: the core's own first, then the most specific.

    The first matching path gets the request, whatever its method. It answers 405 for a method
    without an endpoint, even if a later path has one. An unexpected error is answered with 500. Its
    traceback is logged once a minute, since one client can cause thousands in a second.
    """

    def __init__(self, table: Table, view: AgentView, shared: ListenerParts) -> None:
        self._routes = [
            (re.compile(path_pattern(path)), Dispatcher(table[path], view, shared))
            for path in in_order(table)
        ]
        self._failures = RateLimitedLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            await self._route(scope, receive, send)
        except Refusal as refusal:
            reply = error_reply(refusal.status, _reason(scope, refusal))
            head = (*reply.head, *refusal.headers.items())
            await send_whole(Reply(reply.status, head, reply.content), send)
        except ClientGone:
            await send_whole(Reply(BAD_REQUEST, ()), send)
        except Exception:  # noqa: BLE001 - whatever an endpoint of the core did not expect
            self._failures.warn("request_failed", path=scope["path"][:LONGEST_PATH], exc_info=True)
            with suppress(RuntimeError):  # the answer has begun, and uvicorn cuts it off
                await send_whole(error_reply(FAILED, "internal error; the log has it"), send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        for pattern, dispatcher in self._routes:
            if match := pattern.fullmatch(scope["path"]):
                scope["path_params"] = match.groupdict()
                await dispatcher(scope, receive, send)
                return
        raise Refusal(NOT_FOUND)


def _reason(scope: Scope, refusal: Refusal) -> str:
    path = scope["path"]
    if refusal.status == METHOD_NOT_ALLOWED:
        allowed = refusal.headers["allow"]
        return f"{path} does not take {scope['method']}; allowed are: {allowed}"
    if refusal.message == HTTPStatus.NOT_FOUND.phrase:
        return f"there is no {path} here{_plugin_of(path)}; /index lists what there is"
    return refusal.message


def _plugin_of(path: str) -> str:
    """Return which first-party plugin serves *path* and how to install it, empty for others."""
    plugin = plugin_with(path)
    if plugin is None:
        return ""
    return f"; it is of the plugin {plugin!r}: {install_command(plugin)}"
