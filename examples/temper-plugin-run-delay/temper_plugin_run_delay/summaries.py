"""Summaries of logs, each made by a helper process."""

from typing import Any

from attrs import define

from temper_core import (
    Answer,
    HelperBounds,
    HelperProcess,
    InputError,
    InstrumentContext,
    PluginError,
    Request,
)
from temper_plugin_run_delay.logs import Logs

MIB = 1024 * 1024
ACCEPTED = 202
ENTRY_POINT = "temper_plugin_run_delay.summary:summarize"


@define
class Summaries:
    """Starts one helper at a time, and shows the state of the last."""

    context: InstrumentContext
    logs: Logs
    seconds: float
    _helper: HelperProcess | None = None

    @property
    def pid(self) -> int | None:
        """The id of the running process."""
        helper = self._helper
        return helper.pid if helper is not None and helper.is_running() else None

    def begin(self, request: Request) -> Answer:
        """Start a helper for the log in the path."""
        if self.pid is not None:
            raise InputError("a summary is being made")
        file = self.logs.file(request.query["name"])
        bounds = HelperBounds(memory_bytes=64 * MIB, seconds=self.seconds)
        self._helper = self.context.helper(ENTRY_POINT, str(file), bounds)
        return Answer(b'{"state": "running"}\n', status=ACCEPTED)

    def show(self, _request: Request) -> dict[str, Any]:
        """Return the state of the last summary, with its result or error."""
        if self._helper is None:
            return {"state": "none"}
        try:
            return {"state": "done", "pods": self._helper.result()}
        except TimeoutError:
            return {"state": "running", "pid": self._helper.pid}
        except PluginError as error:
            return {"state": "failed", "reason": error.reason}
