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
from temper_core.plain_json import first_misfit, plain_value
from temper_core.plugin_host import plain_record
from temper_core.plugin_host.answers import judged
from temper_core.plugin_host.plain_errors import describe
from temper_core.records.endpoints import Answer, Endpoint, Request
from temper_core.server.files import NoFile
from temper_core.server.replies import AnswerTooLargeError, Reply, reply_of

LONGEST_MESSAGE = 600
ALLOWED_ANSWERS = "an Answer, or JSON: a dict, list, tuple, set, str, int, float, bool or None"

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


def plugins_answer(value: object, plugin: str) -> Answer:
    """Return a plugin's *value* as an answer. Raise PluginError if it is none, nor a JSON value.

    A number that JSON cannot express becomes null. A set becomes a list.
    """
    if issubclass(type(value), Answer):
        return plain_record(value, Answer)
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        wrong = first_misfit(value)
        if wrong:
            raise PluginError(plugin, f"returned {wrong}; allowed is {ALLOWED_ANSWERS}") from None
        return json_answer(value)
    return Answer(text.encode() + b"\n")


def respond(endpoint: Endpoint, request: Request, plugin: str = "") -> Reply:
    """Call *endpoint*, and turn errors of the request into replies.

    Raises PluginError if the endpoint is a *plugin*'s and its answer cannot be sent.
    """
    is_plugins = bool(plugin)
    try:
        value = endpoint.answer(request)
        if is_plugins:
            send = partial(_plugins_reply, request)
            reply: Reply = judged(send, value, plugin, endpoint.answer)
            return reply
        return reply_of(value if isinstance(value, Answer) else json_answer(value), request)
    except NoFile as error:
        return error_reply(NOT_FOUND, str(error), is_plugins=is_plugins)
    except InputError as error:
        return error_reply(BAD_REQUEST, message_of(error), is_plugins=is_plugins)


def _plugins_reply(request: Request, value: object, plugin: str) -> Reply:
    return reply_of(plugins_answer(value, plugin), request, is_plugins=True)


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
        return respond(endpoint, request, plugin)
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
