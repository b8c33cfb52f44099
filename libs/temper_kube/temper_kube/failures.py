"""What can go wrong between a client and the API server.

::

    MachineError
      UnreachableError     no answer, or one that cannot be read. Asking again may help
      RefusalError         an answer with an HTTP status of 300 or more
        GoneError          410: the version to continue from is too old
        ConflictError      409: the object is not what was read before
      ForbiddenError       403, with the right that is missing
      NotFoundError        404

The last three come from ``ApiServer`` only, which explains refusals to people.
"""

from temper_core import MachineError

CONFLICT, GONE = 409, 410


class UnreachableError(MachineError):
    """There is no answer, or none that can be read. Asking again may help."""


class RefusalError(MachineError):
    """The API server refuses. ``status`` is the HTTP status, ``retry_after_s`` what it asks for."""

    def __init__(self, status: int, message: str, retry_after_s: float = 0.0) -> None:
        self.status = status
        self.retry_after_s = retry_after_s
        self.message = message
        super().__init__(f"the API server refuses with status {status}: {message}")


class GoneError(RefusalError):
    """The version to continue from is too old: only a list helps."""

    def __init__(self, message: str) -> None:
        super().__init__(GONE, message)


class ConflictError(RefusalError):
    """The object exists already, or another client has changed it since it was read."""

    def __init__(self, message: str) -> None:
        super().__init__(CONFLICT, message)


class ForbiddenError(MachineError):
    """A right is missing. ``right`` names it, as ``verb resource.group``."""

    def __init__(self, right: str, user: str) -> None:
        self.right = right
        super().__init__(f"forbidden: {user} lacks the right to {right}")


class NotFoundError(MachineError):
    """There is no such object, or the server does not know its kind. ``message`` is its answer."""

    def __init__(self, path: str, message: str) -> None:
        self.message = message
        super().__init__(f"{path}: {message}")
