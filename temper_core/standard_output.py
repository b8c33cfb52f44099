"""The standard streams of a command: nothing that it writes controls the terminal.

Results go to standard output. Plugins print to standard error, and lost output is an error.
"""

import io
import os
import sys
import time
from _thread import get_ident  # threading is slow to import
from collections.abc import Callable, Iterable

from temper_core.errors import EXIT_CLEAN, EXIT_MACHINE, InputError, MachineError
from temper_core.visible_text import filtered

TYPE_CHECKING = False  # typing is slow to import, and every start would wait for it
if TYPE_CHECKING:
    from typing import Any, TextIO

GRACE_S = 1.0

_plugin_threads: set[int] = set()


class ReaderGone(Exception):  # noqa: N818 - names what happened
    """The reader of standard output has gone. This is no error, but ends the command."""


class ResultLost(MachineError):  # noqa: N818 - names what happened
    """Standard output is closed or full."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot write the result: {error.strerror or error}")


def enter_plugin_thread() -> None:
    """Send what the current thread prints to standard error from now on."""
    _plugin_threads.add(get_ident())


def leave_plugin_thread() -> None:
    """Undo ``enter_plugin_thread``: a later thread may have the same ident."""
    _plugin_threads.discard(get_ident())


def deliver(command: Callable[[], int]) -> int:
    """Run *command* with its streams guarded. Return its exit code, or 3 if output was lost.

    Text on ``sys.stdout`` and ``sys.stderr`` is made visible: see ``visible_text``.
    A reader that goes away is no error: the command runs to its end and its exit code is returned.
    A command that still writes GRACE_S seconds later may never end, and is ended with code 0.
    """
    _fill_descriptors()
    original, original_messages = sys.stdout, sys.stderr
    results = _Results(original)
    sys.stdout, sys.stderr = results, _guarded(original_messages)
    try:
        code = _flushed(results, _completed(command))
    finally:
        sys.stdout = original
    # After an exception standard error stays guarded: Python prints the traceback to it.
    sys.stderr = original_messages
    return code


def _fill_descriptors() -> None:
    """Open ``/dev/null`` for each closed standard descriptor, and for messages.

    The next opened file would have its number, and be the output of child processes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the life of the process


def write_bytes(content: bytes) -> None:
    """Write binary *content* to standard output. Raise InputError if that is a terminal.

    Raises ReaderGone or ResultLost, once, if it cannot be written.
    """
    if not isinstance(sys.stdout, _Results) or sys.stdout.isatty():
        raise InputError("binary output is for a file or a pipe, and not for a terminal")
    sys.stdout.write_bytes(content)


def _completed(command: Callable[[], int]) -> int:
    try:
        return command()
    except ReaderGone:
        return EXIT_CLEAN


def _flushed(results: "_Results", code: int) -> int:
    try:
        results.flush()
    except ReaderGone:
        results.descriptor.lost = True  # what is left is dropped when Python closes the stream
        return code
    except ResultLost as error:
        return _told(error)
    return EXIT_MACHINE if results.descriptor.lost else code


def _told(error: ResultLost) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"temper: {error}\n")
    return error.exit_code


class _Descriptor(io.RawIOBase):
    """A file descriptor that fails once and then discards output, so that no later flush fails."""

    lost = False
    _gone_since: float | None = None

    def __init__(self, number: int | None) -> None:
        super().__init__()
        self._number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return super().fileno() if self._number is None else self._number

    def isatty(self) -> bool:
        return self._number is not None and os.isatty(self._number)

    def write(self, data: "Any") -> int | None:  # noqa: ANN401 - a buffer of io
        if self.lost:
            return len(data)
        if self._gone_since is not None:
            if time.monotonic() - self._gone_since > GRACE_S:
                raise ReaderGone
            return len(data)
        try:
            return os.write(-1 if self._number is None else self._number, data)
        except BlockingIOError:
            return None
        except BrokenPipeError:
            self._gone_since = time.monotonic()
            return len(data)
        except OSError as error:
            self.lost = True
            raise ResultLost(error) from error


class _Results(io.TextIOWrapper):
    """Standard output as visible text. The output of plugins' threads goes to standard error."""

    makes_visible = True

    def __init__(self, original: "io.TextIOBase | object | None") -> None:
        self.descriptor = _Descriptor(_number_of(original))
        self._binary = io.BufferedWriter(self.descriptor)
        super().__init__(
            self._binary,
            encoding=getattr(original, "encoding", None) or "utf-8",
            errors=_lenient(original),
            line_buffering=self.descriptor.isatty(),
        )

    @property
    def buffer(self) -> None:  # type: ignore[override]
        """None. click would write to the buffer of a stream that is ASCII, past ``write``."""

    def write(self, text: str) -> int:
        """Write *text*. Raise ReaderGone or ResultLost, once, if that fails."""
        if get_ident() not in _plugin_threads:
            super().write(filtered(text))
            return len(text)
        return len(text) if sys.stderr is None else sys.stderr.write(text)

    def write_bytes(self, content: bytes) -> None:
        """Write *content* after the text so far."""
        self.flush()
        self._binary.write(content)


class _Messages:
    """Standard error as visible text."""

    makes_visible = True
    encoding = "utf-8"  # click writes to the buffer of a stream that is ASCII

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(filtered(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> "Any":  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


def _guarded(stream: "TextIO | None") -> "Any":  # noqa: ANN401 - sys.stderr, which may be None
    if stream is None or isinstance(stream, _Messages):
        return stream
    return _Messages(stream)


def _lenient(stream: object) -> str:
    """Return the error handler of the encoding: names of threads and pods may hold anything."""
    handler: str | None = getattr(stream, "errors", None)
    return "replace" if handler in (None, "strict") else handler


def _number_of(stream: object) -> int | None:
    fileno = getattr(stream, "fileno", None)
    number: int | None = fileno() if fileno else None
    return number
