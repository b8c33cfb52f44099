"""The way to an agent through a relay in its pod."""

import json
import os
import select
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

from attrs import define, field

from temper_core import InputError, MachineError
from temper_core.observed import number, text
from temper_kube.kubectl import LARGEST_ANSWER_BYTES, USAGE_ERROR, Conversation
from temper_plugin_trainer.refining.node_facts import NodeFacts
from temper_plugin_trainer.refining.trial_door import Method

ANSWER_S = 60.0
"""Seconds within which the relay answers."""
START_S = 180.0
"""Seconds within which the relay starts: on a slow node Python and its modules load for long."""
PIECE_BYTES = 1 << 18
LONGEST_TEXT = 400
"""Characters of the names of machine and kernel, and of an error. A profile takes 500."""
SCHEMA_VERSION = 1


@define
class RelayClient:
    """Asks the agent through the relay that runs in *conversation*."""

    conversation: Conversation
    _lock: Any = field(factory=Lock, init=False)
    _rest: bytes = field(default=b"", init=False)

    def greeting(self) -> NodeFacts:
        """Return the first line of the relay, which describes its node.

        Raises InputError or MachineError if no relay of this version answers.
        """
        line = self._line(START_S)
        if number(line, "schema_version") != SCHEMA_VERSION:
            raise MachineError(f"{self._pod} answers with no relay: is its version another?")
        return NodeFacts(_bounded(text(line, "machine")), _bounded(text(line, "kernel")))

    def ask(
        self,
        path: str,
        method: Method = "GET",
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Return the agent's answer. Raise as ``temper_core.ask_agent``, or if the relay ended."""
        request = {"path": path, "method": method, "body": body, "query": query}
        with self._lock:
            self._send(json.dumps(request).encode() + b"\n")
            line = self._line(ANSWER_S)
        if "error" in line:
            message = f"{self._pod}: {_bounded(text(line, 'error'))}"
            is_ours = line.get("exit_code") == USAGE_ERROR
            raise InputError(message) if is_ours else MachineError(message)
        return line.get("answer")

    def keep_alive(self) -> None:
        """Send a sign of life to the relay. If that fails, the next question raises the error."""
        with self._lock:
            try:
                self._send(b"\n")
            except (InputError, MachineError):
                return

    @property
    def _pod(self) -> str:
        return self.conversation.pod

    def _send(self, line: bytes) -> None:
        stream = self.conversation.process.stdin
        try:
            stream.write(line)  # type: ignore[union-attr]  # a pipe
            stream.flush()  # type: ignore[union-attr]
        except OSError as error:
            raise self.conversation.failure() from error

    def _line(self, within_s: float) -> Mapping[str, Any]:
        """Return the next line of the relay. Raise MachineError if there is none in time."""
        descriptor = self.conversation.process.stdout.fileno()  # type: ignore[union-attr]  # a pipe
        ends_at = time.monotonic() + within_s
        while b"\n" not in self._rest:
            left_s = max(0.0, ends_at - time.monotonic())
            if not select.select([descriptor], [], [], left_s)[0]:
                raise MachineError(f"{self._pod} did not answer within {within_s:g} s")
            piece = os.read(descriptor, PIECE_BYTES)
            if not piece:
                raise self.conversation.failure()
            self._rest += piece
            if len(self._rest) > LARGEST_ANSWER_BYTES:
                raise MachineError(f"{self._pod} answers with too much: is its version another?")
        line, _, self._rest = self._rest.partition(b"\n")
        return self._parsed(line)

    def _parsed(self, line: bytes) -> Mapping[str, Any]:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MachineError(f"{self._pod} answers with no JSON: {error}") from error
        if not isinstance(document, Mapping):
            raise MachineError(f"{self._pod} answers with no JSON object")
        return document


def _bounded(words: str) -> str:
    """Return *words* in one line of bounded length."""
    return " ".join(words[:LONGEST_TEXT].split())
