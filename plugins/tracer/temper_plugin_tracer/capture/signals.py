"""The wake-ups that the BPF programs send: a BPF ring buffer whose content says nothing.

The kernel's side of it is ``bpf_ringbuf_output`` with ``BPF_RB_FORCE_WAKEUP``, since Linux 5.8.
"""

import mmap
import select
import struct

from temper_core import BpfError

_POSITION = struct.Struct("@L")


class Signals:
    """The ring buffer of the descriptor *map_fd*, of one page. Raises BpfError.

    The first page of its memory has the position of the reader, and the second that of the writer
    (kernel/bpf/ringbuf.c).
    """

    def __init__(self, map_fd: int) -> None:
        try:
            self._read = mmap.mmap(map_fd, mmap.PAGESIZE)
            self._written = mmap.mmap(
                map_fd, mmap.PAGESIZE, prot=mmap.PROT_READ, offset=mmap.PAGESIZE
            )
        except OSError as error:
            raise BpfError("cannot map the BPF ring buffer", error.errno or 0) from error
        self._poll = select.poll()
        self._poll.register(map_fd, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Wait for a signal, *seconds* at most. Return whether there is one."""
        return bool(self._poll.poll(seconds * 1e3))

    def clear(self) -> None:
        """Forget the signals so far. The next one ends a wait."""
        self._read[: _POSITION.size] = self._written[: _POSITION.size]

    def close(self) -> None:
        """Give the memory back. A second call does nothing."""
        self._read.close()
        self._written.close()
