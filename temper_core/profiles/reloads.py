"""Requests to read all profile files again, which the agent's loop answers."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from attrs import define, field, frozen

from temper_core.errors import MachineError
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.records.profiles import ProfileFailure

PATIENCE_S = 4.0
"""Seconds to wait for the loop. A call into a plugin, which may delay it, takes up to 5."""


@frozen
class Reloaded:
    """The result of a reload.

    Attributes:
        profiles: The number of profiles that are loaded, those of plugins included.
        changed: Whether they differ from what was loaded before.
        failures: What could not be loaded, the first 100 and a count of the others. A file that
            was good before keeps its last good version.

    """

    profiles: int
    changed: bool
    failures: tuple[ProfileFailure, ...] = ()


@define
class Reloads:
    """Requests of any thread. *wake* wakes the loop."""

    wake: Callable[[], object] = lambda: None
    _waiting: deque[Future[Reloaded]] = field(factory=deque, init=False)

    def __bool__(self) -> bool:
        """Whether a request waits for the loop."""
        return bool(self._waiting)

    def ask(self, patience_s: float = PATIENCE_S) -> Reloaded:
        """Wait until the loop has read the files, and return what it found.

        Raises MachineError if it has not done so in *patience_s* seconds. It does so later.
        """
        request = Future[Reloaded]()
        self._waiting.append(request)
        self.wake()
        try:
            return request.result(patience_s)
        except TimeoutError as error:
            raise MachineError(
                f"the agent's loop has not read the profiles within {patience_s:g} s; "
                "it reads them when it turns"
            ) from error

    def taken(self) -> tuple[Future[Reloaded], ...]:
        """Return the requests that wait now. For the loop alone."""
        return tuple(self._waiting.popleft() for _ in range(len(self._waiting)))


def reloaded(former: ProfileCatalogue, catalogue: ProfileCatalogue) -> Reloaded:
    """Return what differs between two catalogues."""
    return Reloaded(len(catalogue.profiles), catalogue != former, catalogue.first_failures)
