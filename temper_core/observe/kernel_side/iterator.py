"""Runs a program of section ``iter/task``, which the kernel calls for every thread in turn."""

import os
import struct
from typing import Self

from temper_core.bpf.system_call import Command, call
from temper_core.errors import BpfError

_TRACE_ITER = 28
"""``BPF_TRACE_ITER`` of linux/bpf.h."""
_LINK_CREATE = struct.Struct("<IIII48x")
_ITER_CREATE = struct.Struct("<II")


class TaskIterator:
    """A loaded program with a link to run it. ``close`` removes the link."""

    def __init__(self, program: int) -> None:
        attributes = _LINK_CREATE.pack(program, 0, _TRACE_ITER, 0)
        self._link, _ = call(Command.LINK_CREATE, attributes, "cannot link a BPF iterator")

    def run(self) -> None:
        """Run the program for every thread. Raises ``BpfError``."""
        attributes = _ITER_CREATE.pack(self._link, 0)
        iterator, _ = call(Command.ITER_CREATE, attributes, "cannot run a BPF iterator")
        try:
            while _reads(iterator):
                pass
        except OSError as error:
            raise BpfError("cannot read a BPF iterator", error.errno or 0) from error
        finally:
            os.close(iterator)

    def close(self) -> None:
        """Close the link. A second call does nothing."""
        if self._link >= 0:
            os.close(self._link)
        self._link = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reads(iterator: int) -> bool:
    """Read once more. The program writes no output, so that one read covers a million threads."""
    try:
        return bool(os.read(iterator, 64))
    except BlockingIOError:
        return True
