"""The companions of the agent: who tells a control plane outside of the node how it fares."""

from collections.abc import Sequence
from functools import partial

import structlog
from attrs import frozen

from temper_core.errors import PluginError, TemperError
from temper_core.plugin_host import Contribution, PluginHost
from temper_core.records.contributions import Companion, CompanionContext, OpenCompanion
from temper_core.records.snapshots import Snapshot
from temper_core.restoring.restoration import Restoration
from temper_core.safe_mode.requests import SafeModeRequests

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class _AtWork:
    plugin: str
    name: str
    companion: OpenCompanion

    @property
    def part(self) -> str:
        """What the host sets aside where it fails."""
        return f"companion {self.name}"


class Companions:
    """Opens every companion, tells each of what was seen, and closes them.

    One that fails is set aside by the host and heard no more; what it asked for stands. ``defects``
    say which could not be opened, and why.
    """

    def __init__(
        self,
        host: PluginHost | None = None,
        found: Sequence[Contribution[Companion]] = (),
        requests: SafeModeRequests | None = None,
        node: str = "",
        restoration: Restoration | None = None,
    ) -> None:
        self._host = host or PluginHost()
        self._found = found
        self._requests = requests
        self._node = node
        self._restoration = restoration
        self._at_work: list[_AtWork] = []
        self.defects: tuple[str, ...] = ()

    def open(self) -> None:
        """Open all of them; returns when each has said whether it wants safe mode."""
        for contribution in self._found:
            name = contribution.record.name
            try:
                opened = self._host.call(
                    contribution.plugin,
                    contribution.record.open,
                    self._context(name),
                    allows=(TemperError,),
                    part=f"companion {name}",
                )
            except TemperError as error:
                self._note(name, error)
            else:
                self._at_work.append(_AtWork(contribution.plugin, name, opened))

    def tell(self, snapshot: Snapshot) -> None:
        """Tell each of the latest look at the node."""
        for each in self._at_work:
            try:
                self._host.call(each.plugin, each.companion.tell, snapshot, part=each.part)
            except PluginError:
                # Counted and told by the host, which asks it no more once it is set aside.
                continue

    def close(self) -> None:
        """Close each; one that fails keeps no other from being closed."""
        while self._at_work:
            each = self._at_work.pop()
            try:
                self._host.call(each.plugin, each.companion.close, part=each.part)
            except PluginError as error:
                log.warning("companion_not_closed", companion=each.name, reason=error.reason)

    def _context(self, name: str) -> CompanionContext:
        requests, restoration = self._requests, self._restoration
        if requests is None:
            return CompanionContext(self._node, lambda _reason: None, lambda: None)
        if restoration is None:
            return CompanionContext(
                self._node, partial(requests.add, name), partial(_release, requests, name)
            )
        return CompanionContext(
            self._node,
            partial(_request_only, restoration, requests, name),
            partial(_release_both, restoration, requests, name),
            partial(restoration.ask, name),
        )

    def _note(self, name: str, error: TemperError) -> None:
        log.warning("companion_not_opened", companion=name, reason=str(error))
        self.defects = (*self.defects, f"companion {name}: {error}")


def _release(requests: SafeModeRequests, name: str) -> None:
    requests.withdraw(name)


def _request_only(
    restoration: Restoration, requests: SafeModeRequests, name: str, reason: str
) -> None:
    restoration.withdraw(name)
    requests.add(name, reason)


def _release_both(restoration: Restoration, requests: SafeModeRequests, name: str) -> None:
    restoration.withdraw(name)
    requests.withdraw(name)
