"""Errors of requests to the API server.

::

    MachineError
      UnreachableError     no answer, or a malformed one. A repeated request may succeed
      RefusalError         an answer with an HTTP status of 300 or more
        GoneError          410: the version to continue from is too old
        ConflictError      409: the object has changed since it was read
      CredentialsError     401: the credentials are not accepted
      ForbiddenError       403, with the missing right
      NotFoundError        404
      MalformedError       an object of a list has values of the wrong types

Only ``ApiServer`` raises the last five. It explains refusals to operators.
"""

from temper_core import MachineError

CONFLICT, GONE, TOO_MANY = 409, 410, 429
MALFORMED = (LookupError, TypeError, ValueError, AttributeError)
"""What the reader of an object raises if a value in it has the wrong type. No API server that
checks its objects sends one."""


class UnreachableError(MachineError):
    """There is no answer, or a malformed one. A repeated request may succeed."""


class RefusalError(MachineError):
    """The API server refuses. ``status`` is the HTTP status.

    ``retry_after_s`` is the wait that the server requests.
    """

    def __init__(self, status: int, message: str, retry_after_s: float = 0.0) -> None:
        self.status = status
        self.retry_after_s = retry_after_s
        self.message = message
        super().__init__(f"the API server refuses with status {status}: {message}")


class GoneError(RefusalError):
    """The version to continue from is too old: a new list is needed."""

    def __init__(self, message: str) -> None:
        super().__init__(GONE, message)


class ConflictError(RefusalError):
    """The object exists already, or another client has changed it since it was read."""

    def __init__(self, message: str) -> None:
        super().__init__(CONFLICT, message)


class CredentialsError(MachineError):
    """The API server does not accept the credentials. It refuses every request with them."""

    def __init__(self) -> None:
        super().__init__(
            "the API server does not accept these credentials (401): the token or certificate "
            "may have expired"
        )


class ForbiddenError(MachineError):
    """A right is missing. ``right`` names it, as ``verb resource.group``."""

    def __init__(self, right: str, user: str) -> None:
        self.right = right
        super().__init__(f"forbidden: {user} lacks the right to {right}")


class NotFoundError(MachineError):
    """The object or its kind does not exist. ``message`` is the server's answer."""

    def __init__(self, path: str, message: str) -> None:
        self.message = message
        super().__init__(f"{path}: {message}")


class MalformedError(MachineError):
    """An object of a list has values of the wrong types. ``message`` does not name the list."""

    def __init__(self, path: str, why: str) -> None:
        self.message = f"the API server sent an object that cannot be read: {why}"
        super().__init__(f"{path}: {self.message}")
