"""Captures of the agent's plugin ``tracer``, as a training uses them: one of a pod at a time."""

import base64
import binascii
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from attrs import frozen

from temper_core import InputError, MachineError, TemperError
from temper_core.observed import number, rows, text
from temper_plugin_trainer.refining.trial_door import Ask

SECONDS = 3.0
"""Duration of a recording."""
MOST_BYTES = 2 * 1024 * 1024
"""Size of a trace, which the agent never exceeds."""
WRITTEN_WITHIN_S = 60.0
"""Seconds after a recording within which its trace is whole."""
POLL_S = 0.2
UNDER_WAY = frozenset({"recording", "writing"})


@frozen
class Capture:
    """A finished capture: its bytes, its number of events, its seconds, and what ended it."""

    content: bytes
    events: int
    seconds: float
    ended_by: str


@frozen
class DoorTraces:
    """The captures of the agent that *ask* is the way to. All methods raise as ``ask`` does.

    *wait* waits for some seconds. An exception of it ends the waiting for a capture.
    """

    ask: Ask
    wait: Callable[[float], None] = time.sleep

    def require(self) -> None:
        """Raise InputError if the agent has no plugin that captures."""
        self.ask("/traces")

    def begin(self, selection: Mapping[str, str | int]) -> str:
        """Begin a capture of a pod or a process, and return its id.

        *selection* is as in a request of the agent. Raises InputError if it is refused.
        """
        body = {"seconds": SECONDS, "bytes": MOST_BYTES, **selection}
        return text(_table(self.ask("/trace", "POST", body), "/trace"), "id")

    def taken(self, capture: str) -> Capture:
        """Wait for the end of *capture*, and return it. Raises MachineError if it failed."""
        entry = self._awaited(capture, self.wait)
        if text(entry, "state") != "finished":
            raise MachineError(f"nothing was captured: {text(entry, 'reason') or 'it is gone'}")
        return Capture(
            b"".join(self._parts(capture)),
            int(number(entry, "events") or 0),
            number(entry, "seconds") or 0.0,
            text(entry, "ended_by"),
        )

    def forget(self, capture: str) -> None:
        """Have the agent end and delete *capture*. An agent that is gone has none."""
        with suppress(TemperError):
            for _ in ("end", "delete"):
                if self._entry(capture):
                    self.ask(f"/trace/{capture}", "DELETE")
                    self._awaited(capture, time.sleep)

    def _awaited(self, capture: str, wait: Callable[[float], None]) -> Mapping[str, Any]:
        ends_at = time.monotonic() + SECONDS + WRITTEN_WITHIN_S
        while text(entry := self._entry(capture), "state") in UNDER_WAY:
            if time.monotonic() > ends_at:
                raise MachineError(f"the capture did not end within {WRITTEN_WITHIN_S:g} s")
            wait(POLL_S)
        return entry

    def _entry(self, capture: str) -> Mapping[str, Any]:
        """Return the entry of *capture*, empty without one."""
        every = rows(_table(self.ask("/traces"), "/traces"), "traces")
        return next((row for row in every if text(row, "id") == capture), {})

    def _parts(self, capture: str) -> Iterator[bytes]:
        received, size = 0, 1
        while received < size:
            query = {"offset": str(received)}
            part = _table(self.ask(f"/trace/{capture}/part", query=query), "/trace")
            content, size = _decoded(part), int(number(part, "bytes") or 0)
            received += len(content)
            if not content or received > MOST_BYTES:
                raise MachineError(f"the trace ended after {received} of {size} bytes")
            yield content


def _decoded(part: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(text(part, "content"), validate=True)
    except binascii.Error as error:
        raise MachineError(f"the agent's answer is no part of a trace: {error}") from error


def _table(answer: object, path: str) -> Mapping[str, Any]:
    if not isinstance(answer, Mapping):
        raise InputError(f"the agent's answer to {path} is no JSON object")
    return answer
