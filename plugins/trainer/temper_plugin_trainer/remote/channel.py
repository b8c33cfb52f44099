"""The pipes between a relay and its other side, which may end or stall at any time."""

import os
import select
from collections.abc import Iterator

from attrs import frozen

from temper_core import InputError, MachineError

SILENCE_S = 30.0
"""Seconds without a line, or without one being read, after which the other side counts as gone."""
LONGEST_LINE_BYTES = 1 << 20
PIECE_BYTES = 1 << 16
WRITTEN_BYTES = 4096
"""PIPE_BUF of Linux: a pipe that select(2) finds writable takes so much at once, see pipe(7)."""


@frozen
class Channel:
    """Lines from *source* and to *target*. Both end once *stop* has anything to read.

    All are descriptors. ``stop`` is -1 if nothing else ends the channel.
    """

    source: int
    target: int
    stop: int = -1
    silence_s: float = SILENCE_S

    def lines(self) -> Iterator[bytes]:
        """Yield lines until the source or the channel ends.

        Raises MachineError if it is silent, InputError for a line that is too long.
        """
        rest = b""
        while len(rest) <= LONGEST_LINE_BYTES:
            readable, _, _ = select.select(self._stops([self.source]), [], [], self.silence_s)
            if not readable:
                raise MachineError(
                    f"heard nothing for {self.silence_s:g} s, and ended what was begun"
                )
            piece = b"" if self.stop in readable else os.read(self.source, PIECE_BYTES)
            if not piece:
                return
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
        raise InputError(f"a line has more than {LONGEST_LINE_BYTES} bytes")

    def write(self, text: str) -> None:
        """Write *text*. Raises MachineError if no process reads it, or the channel ends."""
        content = text.encode()
        while content:
            stops, writable, _ = select.select(self._stops([]), [self.target], [], self.silence_s)
            if stops or not writable:
                reason = "a signal" if stops else f"no answer was read for {self.silence_s:g} s"
                raise MachineError(f"{reason}: ended what was begun")
            content = content[os.write(self.target, content[:WRITTEN_BYTES]) :]

    def _stops(self, others: list[int]) -> list[int]:
        return others if self.stop < 0 else [*others, self.stop]
