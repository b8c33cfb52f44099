"""What can go wrong between the agent and the API server."""

from temper_core import MachineError

GONE = 410


class AwayError(MachineError):
    """Nobody answers, or not in a way that can be understood; asking again may help."""


class RefusalError(MachineError):
    """The API server refuses; ``status`` is the HTTP status, ``retry_after_s`` what it asks for."""

    def __init__(self, status: int, message: str, retry_after_s: float = 0.0) -> None:
        self.status = status
        self.retry_after_s = retry_after_s
        super().__init__(f"the API server refuses with status {status}: {message}")


class GoneError(RefusalError):
    """The version to go on from is too old: only a list helps."""

    def __init__(self, message: str) -> None:
        super().__init__(GONE, message)
