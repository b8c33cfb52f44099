"""Asks Prometheus in each cycle, on a thread of its own."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from temper_core import TemperError
from temper_kube.backoff import Backoff

LONGEST_PAUSE_S = 300.0
Answer = TypeVar("Answer")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Measurer(Generic[Answer]):
    """Calls *begin* in each interval with what *ask* returns, None if it fails.

    While it fails the pauses grow up to ``LONGEST_PAUSE_S``. Nothing is asked while *is_needed*
    is false.
    """

    def __init__(
        self,
        ask: Callable[[], Answer] | None,
        begin: Callable[[Answer | None], object],
        is_needed: Callable[[], bool],
        interval_s: float,
    ) -> None:
        self._ask = ask
        self._begin = begin
        self._is_needed = is_needed
        self._interval_s = interval_s
        self._backoff = Backoff(interval_s, max(interval_s, LONGEST_PAUSE_S))
        self._asks_again_at = 0.0
        self.last: Answer | None = None

    def run(self, closing: threading.Event) -> None:
        """Work until *closing* is set."""
        while not closing.is_set():
            if self._is_needed():
                self._begin(self._measured())
            closing.wait(self._interval_s)

    def _measured(self) -> Answer | None:
        if self._ask is None or time.monotonic() < self._asks_again_at:
            return None
        try:
            self.last = self._ask()
        except TemperError as error:
            pause_s = self._backoff.failed()
            self._asks_again_at = time.monotonic() + pause_s
            log.warning("metrics_not_read", reason=str(error)[:300], again_in_s=round(pause_s))
            return None
        self._backoff.forget()
        return self.last
