"""What the scheduler counts: starts by cause, ends by kind, and the windows without an engine."""

from collections import Counter

from temper_core.records.histogram import Histogram


class Counters:
    """Grows only; read from any thread.

    ``reloads`` counts engine starts by cause: ``start``, ``plan``, ``rollback``, ``recovery``
    (after an unasked end or a failed start), ``safe_mode`` (after it was left) and ``hotplug``
    (the engine re-attached by itself). A *stock window* is the time between the kernel dropping
    one engine and taking the next in a planned change; ``stock_seconds`` holds them all.
    """

    def __init__(self) -> None:
        self.reloads: Counter[str] = Counter()
        self.ejections: Counter[str] = Counter()
        self.stock_seconds = Histogram()

    def note_window(self, seconds: float) -> None:
        """Count one window on the stock scheduler."""
        self.stock_seconds = self.stock_seconds.with_value(seconds)
