"""What the server answers with: bytes, a status, and one clear message for every error."""

import json
from collections.abc import Callable
from typing import Any

from temper_core.errors import (
    DocumentError,
    InputError,
    MachineError,
    PluginError,
    TemperError,
)
from temper_core.plain_json import plain_value
from temper_core.records.endpoints import Answer, Endpoint, Request

LONGEST_MESSAGE = 600

OK = 200
BAD_REQUEST = 400
NOT_FOUND = 404
UNAVAILABLE = 503


def json_answer(value: Any, status: int = OK) -> Answer:  # noqa: ANN401 - JSON may say anything
    """Say *value* as JSON; what JSON cannot say becomes null or text."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(plain_value(value), allow_nan=False)
    return Answer(text.encode() + b"\n", status=status)


def error_answer(status: int, message: str) -> Answer:
    """Say what went wrong, in one line that the caller may print."""
    line = "; ".join(message.splitlines())
    if len(line) > LONGEST_MESSAGE:
        line = f"{line[:LONGEST_MESSAGE]}…"
    return json_answer({"error": line}, status)


def respond(endpoint: Endpoint, request: Request) -> Answer:
    """Ask *endpoint*, and answer for the errors that are the caller's own."""
    try:
        value = endpoint.answer(request)
    except InputError as error:
        return error_answer(BAD_REQUEST, message_of(error))
    return value if isinstance(value, Answer) else json_answer(value)


def respond_guarded(
    plugin: str,
    call: Callable[..., Answer],
    endpoint: Endpoint,
    request: Request,
) -> Answer:
    """Ask a plugin's *endpoint* through *call*, which holds it to its deadline."""
    try:
        return call(plugin, respond, endpoint, request, part=f"endpoint {endpoint.name}")
    except PluginError as error:
        return error_answer(UNAVAILABLE, f"the endpoint of plugin {plugin!r} failed: {error}")


def respond_trusted(endpoint: Endpoint, request: Request) -> Answer:
    """Ask an *endpoint* of the core, whose errors are all ours."""
    try:
        return respond(endpoint, request)
    except MachineError as error:
        return error_answer(UNAVAILABLE, message_of(error))


def message_of(error: TemperError) -> str:
    """Say what *error* says, without the name of a document where that was the request."""
    if not isinstance(error, DocumentError):
        return str(error)
    return "; ".join(problem.removeprefix("document: ") for problem in error.problems)
