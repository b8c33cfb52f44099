"""How instruments ask for safe mode and for a restoration."""

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

    def request(self, name: str, reason: str) -> None:
        """Ask for safe mode. A wish to restore is taken back."""
        self.restoration.withdraw(name)
        self.requests.add(name, reason)

    def release(self, name: str) -> None:
        """Take the request back, and a wish to restore."""
        self.restoration.withdraw(name)
        self.requests.withdraw(name)

    def restore(self, name: str, reason: str, done: Callable[[Restored], None]) -> None:
        """Ask for safe mode and for a restoration. *done* is called after it."""
        self.restoration.ask(name, reason, done)
