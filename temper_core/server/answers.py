"""The server's answers: bytes, a status, and one message for every error."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from temper_core.errors import (
    DocumentError,
    InputError,
    MachineError,
    PluginError,
    TemperError,
)
from temper_core.plain_json import plain_value
from temper_core.plugin_host import plain_record
from temper_core.plugin_host.plain_errors import describe
from temper_core.records.endpoints import Answer, Endpoint, Request
from temper_core.server.files import NoFile
from temper_core.server.replies import AnswerTooLargeError, Reply, reply_of

LONGEST_MESSAGE = 600

OK = 200
BAD_REQUEST = 400
NOT_FOUND = 404
UNAVAILABLE = 503


def json_answer(value: Any, status: int = OK) -> Answer:  # noqa: ANN401 - any JSON value
    """Return *value* as JSON. A value that JSON cannot express becomes null or text."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(plain_value(value), allow_nan=False)
    return Answer(text.encode() + b"\n", status=status)


def error_answer(status: int, message: str) -> Answer:
    """Return *message* as one bounded line in a JSON object."""
    line = "; ".join(message.splitlines())
    if len(line) > LONGEST_MESSAGE:
        line = f"{line[:LONGEST_MESSAGE]}…"
    return json_answer({"error": line}, status)


def error_reply(status: int, message: str, *, is_plugins: bool = False) -> Reply:
    """Return the reply of an error."""
    return reply_of(error_answer(status, message), Request(), is_plugins=is_plugins)


def respond(endpoint: Endpoint, request: Request, *, is_plugins: bool = False) -> Reply:
    """Call *endpoint*, and turn errors of the request into replies."""
    try:
        value = endpoint.answer(request)
        if not issubclass(type(value), Answer):
            answer = json_answer(value)
        else:
            answer = plain_record(value, Answer) if is_plugins else value
        return reply_of(answer, request, is_plugins=is_plugins)
    except NoFile as error:
        return error_reply(NOT_FOUND, str(error), is_plugins=is_plugins)
    except InputError as error:
        return error_reply(BAD_REQUEST, message_of(error), is_plugins=is_plugins)


def respond_guarded(
    plugin: str,
    call: Callable[..., Reply],
    endpoint: Endpoint,
    request: Request,
) -> Reply:
    """Call a plugin's *endpoint* through *call*, which enforces its deadline."""
    try:
        part = f"endpoint {endpoint.name}"
        function = partial(_respond_as_plugin, plugin)
        return call(plugin, function, endpoint, request, part=part, is_clients=True)
    except PluginError as error:
        message = f"the endpoint of plugin {plugin!r} failed: {error}"
        return error_reply(UNAVAILABLE, message, is_plugins=True)


def _respond_as_plugin(plugin: str, endpoint: Endpoint, request: Request) -> Reply:
    """Call *endpoint*. An answer that is too large is no failure of the plugin.

    Its size may follow from the request, or from the node's pods. A MachineError is about the node,
    such as of a full disk or of a restoration.
    """
    try:
        return respond(endpoint, request, is_plugins=True)
    except MachineError as error:
        return error_reply(UNAVAILABLE, describe(error), is_plugins=True)
    except AnswerTooLargeError as error:
        message = f"the endpoint of plugin {plugin!r} {error}"
        return error_reply(UNAVAILABLE, message, is_plugins=True)


def respond_trusted(endpoint: Endpoint, request: Request) -> Reply:
    """Call an *endpoint* of the core directly."""
    try:
        return respond(endpoint, request)
    except MachineError as error:
        return error_reply(UNAVAILABLE, message_of(error))
    except AnswerTooLargeError as error:
        return error_reply(UNAVAILABLE, f"{request.path} {error}")


def outcome_of(reply: Reply) -> str:
    """Return the outcome of a request in a line: ``done``, or the reason of the refusal."""
    if reply.status < BAD_REQUEST:
        return "done"
    try:
        document = json.loads(reply.content)
    except (ValueError, RecursionError):
        document = None
    why = document.get("error") if isinstance(document, dict) else None
    return f"{reply.status} {why}" if isinstance(why, str) else str(reply.status)


def message_of(error: TemperError) -> str:
    """Return the text of *error*, without a document's name, since the request is the document."""
    if not isinstance(error, DocumentError):
        return str(error)
    return "; ".join(problem.removeprefix("document: ") for problem in error.problems)
