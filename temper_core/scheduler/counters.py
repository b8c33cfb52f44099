"""What the scheduler counts: starts by cause, ends by kind, and the windows without an engine."""

from collections import Counter, deque

NEWEST_WINDOWS = 1_000


class Counters:
    """Grows only; read from any thread.

    ``reloads`` counts engine starts by cause: ``start``, ``plan``, ``rollback``, ``recovery``
    (after an unasked end or a failed start), ``safe_mode`` (after it was left) and ``hotplug``
    (the engine re-attached by itself). A *stock window* is the time between the kernel dropping
    one engine and taking the next in a planned change.
    """

    def __init__(self) -> None:
        self.reloads: Counter[str] = Counter()
        self.ejections: Counter[str] = Counter()
        self.stock_windows_s: deque[float] = deque(maxlen=NEWEST_WINDOWS)
        self.stock_window_count = 0
        self.stock_window_sum_s = 0.0

    def note_window(self, seconds: float) -> None:
        """Count one window on the stock scheduler."""
        self.stock_windows_s.append(seconds)
        self.stock_window_count += 1
        self.stock_window_sum_s += seconds
