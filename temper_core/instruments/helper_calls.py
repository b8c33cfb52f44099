"""Helpers without a process, for the tests of plugins: the function is called at once."""

import json
import os
from typing import Any

from attrs import frozen

from temper_core.errors import PluginError
from temper_core.instruments import helper_launcher
from temper_core.instruments.helper_order import HelperOrder, order_of
from temper_core.records.instruments import HelperBounds


@frozen
class EndedCall:
    """Implements ``HelperProcess`` for a call that has returned or raised."""

    _order: HelperOrder
    _document: dict[str, Any]

    @property
    def pid(self) -> int:
        """The id of this process."""
        return os.getpid()

    def is_running(self) -> bool:
        """Return False: the call has ended."""
        return False

    def result(self, timeout_s: float = 0.0) -> Any:  # noqa: ANN401, ARG002 - as a process's
        """Return the function's result. Raise PluginError if it raised."""
        if "error" in self._document:
            reason = f"helper {self._order.entry_point} {self._document['error']}"
            raise PluginError(self._order.owner, reason)
        return self._document["result"]

    def stop(self) -> None:
        """Do nothing: the call has ended."""


class HelperCalls:
    """Calls functions like ``HelperProcesses``, but without a process or bounds."""

    def start(
        self,
        owner: str,
        entry_point: str,
        argument: Any,  # noqa: ANN401 - JSON
        bounds: HelperBounds,
    ) -> EndedCall:
        """Call *entry_point*. Argument and result are converted to JSON and back, as by a pipe."""
        order = order_of(owner, entry_point, argument, bounds)
        try:
            document = json.loads(helper_launcher.run(json.loads(order.text())))
        except helper_launcher.NoResult as error:
            document = {"error": str(error)}
        return EndedCall(order, document)

    def stop_all(self, owner: str) -> None:
        """Do nothing: all calls have ended."""
