"""Logs warnings at a limited rate, so that clients that cause them cannot fill the disk."""

import time

import structlog
from attrs import define, field

REPEAT_S = 60.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class RateLimitedLog:
    """Logs a warning at most once in ``REPEAT_S`` seconds, and drops those between."""

    _logged_at: float | None = field(default=None, init=False)

    def warn(self, event: str, **facts: object) -> None:
        """Log *event* with *facts*, unless there was a warning a short time ago."""
        now = time.monotonic()
        if self._logged_at is None or now - self._logged_at >= REPEAT_S:
            self._logged_at = now
            log.warning(event, **facts)
