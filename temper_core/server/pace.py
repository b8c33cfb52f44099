"""Limits the rate of a stream, so that an endless one leaves time for other requests."""

from attrs import define

MOST_PIECES_PER_S = 1_000
MOST_BYTES_PER_S = 32 * 1024 * 1024
FLOOD_S = 10
"""Seconds in a row at the rate limit after which a stream is a flood."""
SECOND_S = 1.0


@define
class StreamRate:
    """Counts the pieces and bytes of a stream, second by second."""

    began: float
    pieces: int = 0
    sent_bytes: int = 0
    full_seconds: int = 0

    def wait_s(self, size: int, now: float) -> float:
        """Count a piece of *size* bytes. Return the seconds to wait before the next."""
        if now - self.began >= SECOND_S:
            is_full = self.pieces >= MOST_PIECES_PER_S and now - self.began < 2 * SECOND_S
            self.full_seconds = self.full_seconds + 1 if is_full else 0
            self.began, self.pieces, self.sent_bytes = now, 0, 0
        self.pieces += 1
        self.sent_bytes += size
        if self.pieces < MOST_PIECES_PER_S and self.sent_bytes < MOST_BYTES_PER_S:
            return 0.0
        return max(0.0, self.began + SECOND_S - now)

    @property
    def is_flood(self) -> bool:
        """Whether there were too many pieces for many seconds in a row."""
        return self.full_seconds >= FLOOD_S
