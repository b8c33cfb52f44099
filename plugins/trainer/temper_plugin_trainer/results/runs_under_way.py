"""The trainings that run now. Their commands report them, and learn from the answer of an abort."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import asdict, define, field

from temper_core import InputError, fit_body
from temper_plugin_trainer.results.run_report import RunReport

MOST_RUNS = 8
SILENT_S = 30.0
"""A run that has not reported for so long is gone: its command was killed, or cannot reach us."""
LARGEST_REPORT_BYTES = 128 * 1024
SOURCE = "body"
EXAMPLE = '{"workload": "shop", "profile": "shop", "pods": ["shop/db-0"], ...}'
RUN_ID = re.compile(r"[a-z0-9]{1,32}")


@define
class _Run:
    report: RunReport
    begun_at: float
    heard_at: float
    abort: str = ""


@define
class RunsUnderWay:
    """The runs by their id, at most ``MOST_RUNS``. Any thread may call every method."""

    clock: Callable[[], float] = time.monotonic
    _runs: dict[str, _Run] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def report(self, run: str, document: object) -> str:
        """Take the report of a run. Return why it has to end, empty if it may go on.

        Raises InputError for a report that is none, and for a run too many.
        """
        if not RUN_ID.fullmatch(run):
            raise InputError("the id of a run has 1 to 32 small letters and digits")
        report = fit_body(document, RunReport, source=SOURCE, example=EXAMPLE)
        now = self.clock()
        with self._lock:
            self._forget_silent(now)
            if report.is_over:
                self._runs.pop(run, None)
                return ""
            if run not in self._runs and len(self._runs) >= MOST_RUNS:
                raise InputError(f"{MOST_RUNS} trainings report already")
            known = self._runs.setdefault(run, _Run(report, time.time(), now))
            known.report, known.heard_at = report, now
            return known.abort

    def abort(self, run: str, requester: str) -> bool:
        """Have a run end with its next report. Return False if there is none of that id."""
        with self._lock:
            self._forget_silent(self.clock())
            known = self._runs.get(run)
            if known is None:
                return False
            known.abort = known.abort or f"aborted by {requester}"
            return True

    def documents(self) -> Iterator[Mapping[str, Any]]:
        """Yield the runs, the first one first."""
        with self._lock:
            self._forget_silent(self.clock())
            runs = [
                (run, *asdict(each, recurse=False).values()) for run, each in self._runs.items()
            ]
        for run, report, begun_at, _, abort in runs:
            yield {"id": run, "begun_at": begun_at, "abort": abort, **asdict(report)}

    def _forget_silent(self, now: float) -> None:
        for run, each in list(self._runs.items()):
            if now - each.heard_at > SILENT_S:
                del self._runs[run]
