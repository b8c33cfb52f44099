"""Iterators of pieces. Each is read in a thread of its own, one piece per request.

An iterator that raises, blocks for ever or never ends affects only its own stream.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from attrs import define, field

from temper_core.errors import MachineError
from temper_core.plugin_host import plain_bytes
from temper_core.plugin_host.plain_errors import describe
from temper_core.plugin_host.plugin_threads import (
    AbandonedCall,
    end_thread,
    interrupt,
    restore_limits,
    start_plugin_thread,
)
from temper_core.standard_output import enter_plugin_thread, leave_plugin_thread

LARGEST_PIECE_BYTES = 1024 * 1024
GRACE_S = 5.0
"""Seconds for an interrupted iterator to end."""
CLOSING_S = 1.0
"""Seconds for all iterators to end when the agent stops."""

_END = object()

OnEnd = Callable[[str, bool], None]
"""Called with the reason why a stream failed, empty if it did not, and whether it hangs."""


class StreamFailed(Exception):  # noqa: N818 - reads as the fact it reports
    """The iterator broke a rule, which the message names."""


class StreamLeft(Exception):  # noqa: N818 - reads as the fact it reports
    """The client disconnected, or the agent stops."""


class Stream:
    """An iterator of pieces in a thread of its own. Used from one event loop.

    ``on_end`` is called once, when the thread has ended or was abandoned.
    """

    def __init__(self, pieces: Iterable[bytes], name: str, idle_s: float, on_end: OnEnd) -> None:
        self._pieces = pieces
        self._idle_s = idle_s
        self._on_end: OnEnd | None = on_end
        self._failure = ""
        self._loop = asyncio.get_running_loop()
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._answer: asyncio.Future[bytes | None] | None = None
        self._due: asyncio.TimerHandle | None = None
        self._is_left = self._is_given_up = False
        self._thread = start_plugin_thread(self._run, (), name)

    async def piece(self) -> bytes | None:
        """Return the next piece, or None at the end. Raise StreamFailed or StreamLeft."""
        if self._is_left:
            raise StreamLeft
        self._answer = self._loop.create_future()
        self._expect("sent nothing")
        self._wanted.put(True)
        return await self._answer

    def leave(self) -> None:
        """End the stream, since its pieces are not read any more. Safe to call twice."""
        if not self._is_left:
            self._is_left = True
            self._wanted.put(False)
            if self.is_open and self._due is None:
                self._expect("did not close")
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(StreamLeft())

    def fail(self, reason: str) -> None:
        """End the stream with *reason* as its failure."""
        self._failure = self._failure or reason
        self.leave()

    def end_by(self, seconds: float) -> None:
        """Wait *seconds* for the thread to end, then interrupt it. The loop has ended by then."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            interrupt(self._thread)

    @property
    def is_left(self) -> bool:
        """Whether no piece is read any more."""
        return self._is_left

    @property
    def is_open(self) -> bool:
        """Whether the thread still runs and was not abandoned."""
        return self._on_end is not None

    def _expect(self, or_else: str) -> None:
        self._due = self._loop.call_later(self._idle_s, self._give_up, or_else)

    def _give_up(self, what: str) -> None:
        """Interrupt the iterator wherever it waits or loops. Fail the requested piece, if any."""
        end_thread(self._thread)
        self._is_given_up = True
        self._failure = self._failure or f"{what} for {self._idle_s:g} s"
        self._due = self._loop.call_later(GRACE_S, self._ended, True)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(StreamFailed(self._failure))

    def _came(self, piece: bytes | None, failure: str) -> None:
        if self._is_given_up:
            return
        self._failure = self._failure or failure
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._is_left and self.is_open:
            self._expect("did not close")
        if self._answer is None or self._answer.done():
            return
        if failure:
            self._answer.set_exception(StreamFailed(failure))
        else:
            self._answer.set_result(piece)

    def _ended(self, is_hung: bool = False) -> None:
        if self._due is not None:
            self._due.cancel()
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(self._failure, is_hung)

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401 - of any
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(function, *arguments)

    def _run(self) -> None:
        enter_plugin_thread()
        try:
            failure = self._read()
            if failure:
                self._tell(self._came, None, failure)
        except AbandonedCall:
            pass
        finally:
            restore_limits()
            leave_plugin_thread()
            self._tell(self._ended)

    def _read(self) -> str:
        """Read pieces while they are requested, then close. Return the failure, empty if none."""
        failure, iterator = "", None
        try:
            iterator = iter(self._pieces)
            while self._wanted.get():
                piece = next(iterator, _END)
                if piece is _END:
                    self._tell(self._came, None, "")
                    break
                self._tell(self._came, _require_piece(piece), "")
        except AbandonedCall:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, also an exit
            failure = str(error) if type(error) is StreamFailed else describe(error)
        for closable in (iterator, self._pieces):
            failure = _closed(closable) or failure
        return failure


def _require_piece(piece: object) -> bytes:
    try:
        plain = plain_bytes(piece)
    except TypeError:
        raise StreamFailed(f"sent a piece of type {type(piece).__name__}, not bytes") from None
    if len(plain) > LARGEST_PIECE_BYTES:
        raise StreamFailed(f"sent a piece of {len(plain)} bytes, more than {LARGEST_PIECE_BYTES}")
    return plain


def _closed(pieces: object) -> str:
    """Close an iterator if it has ``close``. Return the error it raised, as text."""
    try:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
    except AbandonedCall:
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        return describe(error)
    return ""


@define(eq=False)
class Streams:
    """The streams of one listener, at most *most* at a time. Used from one event loop.

    One network of clients has at most half of them. A network that has fewer than others takes the
    place of their oldest stream. As many as *most* streams that were left may still be closing.
    """

    most: int
    idle_s: float
    _open: dict[Stream, str] = field(factory=dict, init=False)
    """The network of each stream's client, empty on a local socket."""
    _is_ending: bool = field(default=False, init=False)

    def open(self, pieces: Iterable[bytes], name: str, on_end: OnEnd, network: str = "") -> Stream:
        """Begin to read *pieces* for a client of *network*, empty on a local socket.

        Raise MachineError if too many streams are open.
        """
        if self._is_ending:
            raise MachineError("the agent is stopping")
        self._open = {other: its for other, its in self._open.items() if other.is_open}
        share = max(1, self.most // 2)
        if network and list(self._open.values()).count(network) >= share:
            raise MachineError(f"{network} has {share} streams open already; close one of them")
        if len(self._open) >= 2 * self.most or not self._has_place(network):
            raise MachineError(f"{self.most} streams are open already; ask again later")
        stream = Stream(pieces, name, self.idle_s, on_end)
        self._open[stream] = network
        return stream

    def _has_place(self, network: str) -> bool:
        """Return whether *network* gets a place. End the oldest stream of the busiest for it."""
        used = [stream for stream in self._open if not stream.is_left]
        if len(used) < self.most:
            return True
        counts = Counter(self._open[stream] for stream in used)
        busiest, count = counts.most_common(1)[0]
        if not network or count <= counts[network] + 1:
            return False
        next(stream for stream in used if self._open[stream] == busiest).leave()
        return True

    def leave(self) -> None:
        """End every stream, since the agent stops."""
        self._is_ending = True
        for stream in self._open:
            stream.leave()

    def close(self) -> None:
        """Wait up to ``CLOSING_S`` for the threads to end. Called after the loop has ended."""
        for stream in self._open:
            stream.end_by(CLOSING_S / len(self._open))
        self._open = {}
