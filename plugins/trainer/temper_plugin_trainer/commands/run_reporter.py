"""Tells the agent how far a training is, and learns from it whether the training has to end."""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from attrs import asdict, evolve

from temper_core import InputError, MachineError, TemperError
from temper_plugin_trainer.refining.trial_door import Door
from temper_plugin_trainer.results.run_report import (
    LONGEST_TEXT,
    MOST_TRIALS,
    EndedTrial,
    RunReport,
)

EVERY_S = 2.0


class RunReporter:
    """Reports a run every two seconds, in a thread of its own, within ``reporting``.

    *say* is called once, with the reason, if the agent takes no reports. The run goes on then.
    """

    def __init__(self, door: Door, report: RunReport, say: Callable[[str], None]) -> None:
        self._door, self._say = door, say
        self._report = report
        self._id = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._abort = ""

    def reason(self) -> str:
        """Return why the run has to end. Empty while it may go on."""
        return self._abort

    def update(self, **changes: Any) -> None:  # noqa: ANN401 - fields of the report
        """Change fields of the report."""
        cut: dict[str, Any] = {
            name: value[:LONGEST_TEXT] if isinstance(value, str) else value
            for name, value in changes.items()
        }
        with self._lock:
            self._report = evolve(self._report, **cut)

    def add(self, trial: EndedTrial) -> None:
        """Add a trial that has ended."""
        self.update(ended=(*self._report.ended, trial)[-MOST_TRIALS:])

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Report until the end of the block, and then that the run is over."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
            self.update(is_over=True)
            with suppress(TemperError):
                self._send()

    def _run(self) -> None:
        while True:
            try:
                self._abort = self._abort or self._send()
            except InputError as error:
                self._say(f"the agent does not show the run: {error}")
                return
            except MachineError:
                pass  # The run itself finds that its agent is gone.
            if self._is_over.wait(EVERY_S):
                return

    def _send(self) -> str:
        with self._lock:
            document = asdict(self._report)
        return self._door.report_run(self._id, document)
