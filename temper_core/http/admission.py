"""Decides which connections are served when there are more than a server has places for.

A server has ``most_open`` places. A connection takes one with its first request. A request that
finds none waits ``wait_s`` for it, and is refused with 503 after that. A probe is answered without
a place, so no number of clients keeps a probe from its answer, as long as its connection is not
closed before it asks. That happens to the oldest of ``most_waiting`` silent connections.

Places are shared by client address: room is made at the cost of the address that has the most, and
a free place goes to the waiting address that has the fewest. All IPv6 addresses of a /64 count as
one address, since a single host may take any of them.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from attrs import define, field

from temper_core.http.bounds import Bounds
from temper_core.http.client_network import oldest_of_the_most
from temper_core.http.rate_limited_log import RateLimitedLog


class Connection(Protocol):
    """A connection as far as its admission goes."""

    silent_since: float
    """When the last request or answer ended or began, by the event loop's clock."""
    is_gone: bool
    """Whether it was hung up on."""
    network: str
    """The network that the client is counted by (``client_network``), empty for a local socket."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being read or answered."""
        ...

    @property
    def is_owed(self) -> bool:
        """Whether the server waits for the client to send or to read."""
        ...

    def hang_up(self) -> None:
        """Close at once."""
        ...

    def extend(self, within_s: float) -> None:
        """Allow *within_s* from now on for what comes next."""
        ...


@define(eq=False)
class Admission:
    """The places of one server, and the connections without one. Used from one event loop.

    A request that is refused for want of a place is logged.
    """

    bounds: Bounds
    _placed: dict[Connection, None] = field(factory=dict, init=False)
    _silent: dict[Connection, None] = field(factory=dict, init=False)
    """The connections that have asked nothing but probes, oldest first."""
    _asking: dict[Connection, asyncio.Future[bool]] = field(factory=dict, init=False)
    """The connections whose request waits for a place, oldest first."""
    _log: RateLimitedLog = field(factory=RateLimitedLog, init=False)

    def arrive(self, connection: Connection) -> None:
        """Take note of a new connection, which has not asked yet.

        With too many of them the oldest is closed. A client asks as soon as it is connected, so
        that a probe is answered before as many others arrive.
        """
        if len(self._silent) >= self.bounds.most_waiting:
            oldest = self._oldest_of_the_most(self._silent)
            del self._silent[oldest]
            oldest.hang_up()
        self._silent[connection] = None
        if not self._is_free:
            connection.extend(self.bounds.wait_s)

    def leave(self, connection: Connection) -> None:
        """Forget a connection that is closed. Its place goes to the next."""
        self._placed.pop(connection, None)
        self._silent.pop(connection, None)
        self._stop_asking(connection, is_placed=False)
        self.settle()

    def get_free_place(self, connection: Connection) -> None:
        """Give *connection* a free place, if there is one."""
        if connection in self._silent and self._is_free:
            self._place(connection)

    async def get_place(self, connection: Connection) -> bool:
        """Wait for a place for *connection*, which has asked. Return False if there is none."""
        if connection in self._placed or self._take_place(connection):
            return True
        if not connection.is_gone and await self._wait_for_place(connection):
            return True
        self._log.warn("request_refused", reason="too many are open", limit=self.bounds.most_open)
        return False

    def is_last(self, connection: Connection) -> bool:
        """Whether the answer that begins is the connection's last, to make room for another.

        It is without a place. While a request waits for a place, it is too for every connection of
        the address with the most places.
        """
        if connection not in self._placed:
            return True
        if not self._asking:
            return False
        held = self._held()
        return held[connection.network] >= max(held.values())

    def settle(self) -> None:
        """Give places to the requests that wait for one, as long as there is room."""
        while self._asking:
            held = self._held()
            first = min(self._asking, key=lambda connection: held[connection.network])
            if not self._take_place(first):
                return
            self._stop_asking(first, is_placed=True)

    @property
    def _is_free(self) -> bool:
        return sum(not placed.is_gone for placed in self._placed) < self.bounds.most_open

    def _take_place(self, connection: Connection) -> bool:
        if connection.is_gone:
            return False
        if not self._is_free:
            present = [placed for placed in self._placed if not placed.is_gone]
            silent = [placed for placed in present if placed.is_idle]
            silent = silent or [placed for placed in present if placed.is_owed]
            if not silent:
                return False
            self._longest_silent(silent).hang_up()
        self._place(connection)
        return True

    def _place(self, connection: Connection) -> None:
        self._silent.pop(connection, None)
        self._placed[connection] = None

    async def _wait_for_place(self, connection: Connection) -> bool:
        if len(self._asking) >= self.bounds.most_waiting:
            self._stop_asking(self._oldest_of_the_most(self._asking), is_placed=False)
        self._silent.pop(connection, None)
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._asking[connection] = place
        try:
            async with asyncio.timeout(self.bounds.wait_s):
                return await place
        except TimeoutError:
            self._asking.pop(connection, None)
            return False

    def _stop_asking(self, connection: Connection, *, is_placed: bool) -> None:
        place = self._asking.pop(connection, None)
        if place is not None and not place.done():
            place.set_result(is_placed)

    def _longest_silent(self, silent: Iterable[Connection]) -> Connection:
        """Return a connection of the address with the most places."""
        held = self._held()
        return min(
            silent, key=lambda connection: (-held[connection.network], connection.silent_since)
        )

    @staticmethod
    def _oldest_of_the_most(connections: Iterable[Connection]) -> Connection:
        """Return the first of the address that has the most of *connections*."""
        return oldest_of_the_most({each: each.network for each in connections})

    def _held(self) -> Counter[str]:
        """Return the number of places of each address."""
        return Counter(connection.network for connection in self._placed if not connection.is_gone)
