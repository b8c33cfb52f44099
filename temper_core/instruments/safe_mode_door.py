"""Requests of instruments for safe mode and for a restoration."""

from collections.abc import Callable

from attrs import frozen

from temper_core.records.restored import Restored
from temper_core.restoring.restoration import Restoration
from temper_core.safe_mode.requests import SafeModeRequests


@frozen
class InstrumentRequests:
    """Requests for safe mode in the names of instruments."""

    requests: SafeModeRequests
    restoration: Restoration

    def is_requested(self) -> bool:
        """Whether anybody requests safe mode."""
        return bool(self.requests.active())

    def request(self, name: str, reason: str) -> None:
        """Request safe mode, and withdraw a request to restore."""
        self.restoration.withdraw(name)
        self.requests.add(name, reason)

    def reason(self, name: str) -> str:
        """Return the reason of the request for safe mode. Empty without one."""
        request = self.requests.active().get(name)
        return request.reason if request else ""

    def release(self, name: str) -> None:
        """Withdraw the request, and a request to restore."""
        self.restoration.withdraw(name)
        self.requests.withdraw(name)

    def restore(self, name: str, reason: str, done: Callable[[Restored], None]) -> None:
        """Request safe mode and a restoration. *done* is called after it."""
        self.restoration.ask(name, reason, done)
