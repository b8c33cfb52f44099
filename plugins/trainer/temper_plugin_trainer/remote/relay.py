"""The relay: it runs in the agent's pod, and passes requests of a training on to the agent.

A request is a line of JSON with ``path``, ``method``, ``body`` and ``query``, and so is its answer:
``answer``, or ``error`` and ``exit_code``. An empty line is a sign of life of the other side. When
its input ends, or is silent for too long, the relay ends all that its requests have begun.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, get_args

from attrs import define, field

from temper_core import InputError, TemperError
from temper_core.observed import table, text
from temper_plugin_trainer.refining.trial_door import Ask, Door, Method
from temper_plugin_trainer.remote.narrowing import narrowed

TRIALS = "/trials"
SAFE_MODE = "/safe-mode"
KEYS = {"path", "method", "body", "query"}
METHODS: tuple[str, ...] = get_args(Method)


@define
class Relay:
    """Passes requests on by *ask*, and knows what they have begun and not ended."""

    ask: Ask
    _trials: set[str] = field(factory=set, init=False)
    _requesters: set[str] = field(factory=set, init=False)

    def serve(self, lines: Iterator[bytes], write: Callable[[str], object]) -> None:
        """Answer *lines* until they end. Nothing that they have begun is left then."""
        try:
            for line in lines:
                if line.strip():
                    write(json.dumps(self.answer(line)) + "\n")
        finally:
            self.close()

    def answer(self, line: bytes) -> Mapping[str, Any]:
        """Return the document that answers the request in *line*."""
        try:
            request = _request(line)
            self._expect(request)
            answer = self.ask(**request)
            self._note(request, answer)
        except TemperError as error:
            return {"error": str(error), "exit_code": error.exit_code}
        return {"answer": narrowed(request["path"], answer)}

    def close(self) -> None:
        """End the trials, and withdraw the requests of safe mode."""
        door = Door(self.ask, ())
        for trial in sorted(self._trials):
            with suppress(TemperError):
                door.release(trial)
        for requester in sorted(self._requesters):
            with suppress(TemperError):
                door.withdraw_stock(requester)

    def _expect(self, request: Mapping[str, Any]) -> None:
        """Note a request of safe mode before it is made: it has no end of its own."""
        body = table(request, "body")
        if request.get("path") == SAFE_MODE and body.get("requested") is True:
            self._requesters.add(text(body, "requester"))

    def _note(self, request: Mapping[str, Any], answer: object) -> None:
        path, method, body = request["path"], request.get("method"), table(request, "body")
        if (path, method) == (TRIALS, "POST") and isinstance(answer, Mapping):
            self._trials.add(text(answer, "id"))
        if method == "DELETE":
            self._trials.discard(path.removeprefix(f"{TRIALS}/"))
        if path == SAFE_MODE and body.get("requested") is False:
            self._requesters.discard(text(body, "requester"))


def _request(line: bytes) -> dict[str, Any]:
    """Return the request in *line*. Raise InputError if it is none."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the relay got no JSON: {error}") from error
    if not isinstance(request, dict) or not request.keys() <= KEYS:
        raise InputError(f"the relay takes {', '.join(sorted(KEYS))}, and nothing else")
    if not isinstance(request.get("path"), str):
        raise InputError("the relay needs a path")
    if request.get("method", "GET") not in METHODS:
        raise InputError(f"the relay takes the methods {', '.join(METHODS)}")
    query = request.get("query") or {}
    if not isinstance(query, dict) or not all(isinstance(value, str) for value in query.values()):
        raise InputError("the relay takes a query of texts")
    return request
