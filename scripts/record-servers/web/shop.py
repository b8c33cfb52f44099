# noqa: INP001 - a program that web servers load by its path
"""A page that costs something, as a WSGI and as an ASGI application."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

Send = Callable[[dict[str, Any]], Awaitable[None]]


def page() -> bytes:
    """Return the digest of some JSON."""
    rows = [{"item": item, "costs": item * 17 % 101} for item in range(200)]
    text = json.dumps(rows).encode()
    return hashlib.sha256(text).hexdigest().encode()


def wsgi(_environment: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    """Answer one request of a WSGI server."""
    answer = page()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


async def asgi(scope: dict[str, Any], _receive: object, send: Send) -> None:
    """Answer one request of an ASGI server."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": page()})
