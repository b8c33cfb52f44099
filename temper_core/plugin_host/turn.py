"""The turn of a plugin: one call at a time, and those of the agent before those of clients."""

from threading import Condition


class Turn:
    """A lock whose waiting clients let the agent's own calls pass.

    The agent waits for one call of a client at most. Without that, a flood of requests would keep
    its loop waiting for a deadline in each look.
    """

    def __init__(self) -> None:
        self._condition = Condition()
        self._is_taken = False
        self._agents_waiting = 0

    def acquire(self, timeout_s: float | None = None, *, is_clients: bool = False) -> bool:
        """Take the turn. Return False if it is not free within *timeout_s*, None for no limit."""
        with self._condition:
            self._agents_waiting += not is_clients
            try:
                is_free = self._condition.wait_for(
                    lambda: not self._is_taken and not (is_clients and self._agents_waiting),
                    timeout_s,
                )
                self._is_taken |= is_free
            finally:
                self._agents_waiting -= not is_clients
            return is_free

    def release(self) -> None:
        """Give the turn to one that waits."""
        with self._condition:
            self._is_taken = False
            self._condition.notify_all()

    def __enter__(self) -> None:
        """Take the turn, however long that takes."""
        self.acquire()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()
