"""Answers in one line or as JSON, and the answers to requests that are refused."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from temper_core import InputError
from temper_serving.bodies import RefusedBodyError
from temper_serving.turns import BusyError

JSON = "application/json"
BAD_REQUEST, UNAVAILABLE = 400, 503

Handler = Callable[[Request], Awaitable[Response]]


def refusing(handler: Handler) -> Handler:
    """Answer errors of a request in one line, with the status that they mean."""

    async def guarded(request: Request) -> Response:
        try:
            return await handler(request)
        except RefusedBodyError as error:
            refusal = line(error.status, str(error))
            # The body was not read to its end, so the connection cannot be used again.
            refusal.headers["connection"] = "close"
            return refusal
        except InputError as error:
            return line(BAD_REQUEST, str(error))
        except BusyError as error:
            busy = line(UNAVAILABLE, str(error))
            busy.headers["retry-after"] = "1"
            return busy

    return guarded


def line(status: int, text: str) -> Response:
    """Return *text* as one line."""
    one_line = " ".join(text.split())
    # A request may have lone surrogates, which UTF-8 cannot encode.
    return PlainTextResponse(f"{one_line}\n".encode(errors="replace"), status_code=status)


def document(values: Mapping[str, Any]) -> Response:
    """Return *values* as JSON."""
    # Starlette's JSONResponse would fail on lone surrogates.
    return Response(json.dumps(values), media_type=JSON)
