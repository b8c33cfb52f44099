"""Takes over a terminal, and restores it at any end."""

import contextlib
import os
import select
import signal
import socket
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from attrs import define, field

from temper_core import MachineError
from temper_core.console import own_sequences
from temper_plugin_console.top.keys import KeyReader

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
"""Another screen, no cursor, no automatic margins (xterm's control sequences); and back."""
MOUSE_ON, MOUSE_OFF = "\x1b[?1000h\x1b[?1006h", "\x1b[?1006l\x1b[?1000l"
"""Report the buttons of the mouse, with places in decimal digits (SGR); and no more."""
CLEAR = "\x1b[2J"
DEFAULT_SIZE = (80, 24)
ENDING = (signal.SIGTERM, signal.SIGHUP)
NOTED = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)
RESIZED, HUNG_UP = "resized", "hung up"
READ_BYTES = 4096
MOST_DIGITS = 4


class EndedBySignal(BaseException):
    """The process received the ending signal ``number``. Only ``full_screen`` handles it."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


def size_of(descriptor: int) -> tuple[int, int]:
    """Return columns and lines: the terminal's, else COLUMNS and LINES, else 80 x 24."""
    try:
        terminal = os.get_terminal_size(descriptor)
    except OSError:
        terminal = os.terminal_size((0, 0))
    width, height = (
        size or _given(name) or default
        for size, name, default in zip(terminal, ("COLUMNS", "LINES"), DEFAULT_SIZE, strict=True)
    )
    return width, height


def _given(name: str) -> int:
    value = os.environ.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() and len(value) <= MOST_DIGITS else 0


@define
class Terminal:
    """Draws lines and reads keys. Only changed lines are written again."""

    _console: "Console"
    _bell: socket.socket
    _keys_from: int | None
    _has_mouse: bool = False
    _before: list[Any] | None = None
    _drawn: list[str] = field(factory=list)
    _size: tuple[int, int] = (0, 0)
    _reader: KeyReader = field(factory=KeyReader)

    def size(self) -> tuple[int, int]:
        """Return columns and lines as they are now."""
        return size_of(sys.stdout.fileno())

    def enter(self) -> None:
        """Take over the terminal. ``leave`` restores its present content."""
        if self._keys_from is not None and self._before is None:
            self._before = termios.tcgetattr(self._keys_from)
            tty.setcbreak(self._keys_from, termios.TCSANOW)
        self._drawn, self._size = [], (0, 0)
        self._write(ENTER + (MOUSE_ON if self._has_mouse else ""))

    def leave(self) -> None:
        """Restore the terminal, if it still exists."""
        if self._keys_from is not None and self._before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._keys_from, termios.TCSANOW, self._before)
            self._before = None
        self._write((MOUSE_OFF if self._has_mouse else "") + LEAVE)

    def draw(self, lines: "Sequence[Text]") -> None:
        """Write *lines* from the top, as far as they have changed."""
        size = self.size()
        written = "" if size == self._size else CLEAR
        drawn = [] if written else self._drawn
        new = self._rendered(lines, size[0])
        for number, line in enumerate(new):
            if number >= len(drawn) or drawn[number] != line:
                written += f"\x1b[{number + 1};1H{line}\x1b[K"
        self._drawn, self._size = new, size
        self._write(written)

    def wait(self, seconds: float) -> list[str]:
        """Return the pressed keys, RESIZED or HUNG_UP, or nothing after *seconds* or a ring.

        Without keys a terminal that has gone away is found at the end of the wait.
        """
        bell = self._bell.fileno()
        watched = [bell, *([] if self._keys_from is None else [self._keys_from])]
        ready, _, _ = select.select(watched, [], [], max(0.0, seconds))
        events = self._noted() if bell in ready else []
        if self._keys_from is not None and self._keys_from in ready:
            data = _read(self._keys_from)
            events += self._reader.keys(data) if data else [HUNG_UP]
        return [HUNG_UP] if _has_gone(sys.stdout.fileno()) else events

    def _noted(self) -> list[str]:
        """Handle the noted signals. Each is a byte with its number, and a ring is a 0."""
        numbers = set(self._bell.recv(READ_BYTES))
        if signal.SIGTSTP in numbers:
            self.leave()
            os.kill(os.getpid(), signal.SIGSTOP)
            self.enter()
        return [RESIZED] if numbers - {0} else []

    def _rendered(self, lines: "Sequence[Text]", width: int) -> list[str]:
        from rich.text import Text

        with self._console.capture() as captured:
            self._console.print(Text("\n").join(lines), end="", soft_wrap=True, width=max(1, width))
        return captured.get().split("\n")

    def _write(self, text: str) -> None:
        if text and not _has_gone(sys.stdout.fileno()):
            try:
                sys.stdout.write(own_sequences(text, sys.stdout))
                sys.stdout.flush()
            except MachineError:
                if not _has_gone(sys.stdout.fileno()):  # it went away meanwhile
                    raise


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, READ_BYTES)
    except OSError:
        return b""


def _has_gone(descriptor: int) -> bool:
    """Whether the terminal has been closed at its other end. To write there would be an error."""
    poller = select.poll()
    poller.register(descriptor, 0)  # POLLHUP and POLLERR are always reported: poll(2)
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poller.poll(0))


@define
class WakeupPipe:
    """Ends the wait of a terminal, from any thread."""

    _end: socket.socket

    def ring(self) -> None:
        """End the wait. A full or closed pipe is ignored."""
        with contextlib.suppress(OSError):
            self._end.send(b"\0")


@contextlib.contextmanager
def full_screen(
    console: "Console", *, has_mouse: bool = False
) -> Iterator[tuple[Terminal, WakeupPipe]]:
    """Take over the terminal, with the mouse if asked to, and restore it at any end.

    On SIGTERM and SIGHUP the terminal is restored, and then the process ends by that signal.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    keys_from = sys.stdin.fileno() if _has_keys() else None
    terminal = Terminal(console, ours, keys_from, has_mouse and keys_from is not None)
    killed_by = 0
    with ours, theirs:
        try:
            with _signals(theirs.fileno()):
                try:
                    terminal.enter()
                    yield terminal, WakeupPipe(theirs)
                finally:
                    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
                    terminal.leave()
        except EndedBySignal as ended:
            killed_by = ended.number
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    if killed_by:
        os.kill(os.getpid(), killed_by)


def _has_keys() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


@contextlib.contextmanager
def _signals(noted_at: int) -> Iterator[None]:
    """Make ending signals raise EndedBySignal, and note the others as bytes."""
    before: dict[signal.Signals, Any] = {}
    before_descriptor = signal.set_wakeup_fd(noted_at, warn_on_full_buffer=False)
    try:
        for number in ENDING:
            before[number] = signal.signal(number, _end)
        for number in NOTED:
            before[number] = signal.signal(number, _note)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_descriptor)


def _end(number: int, _: FrameType | None) -> None:
    raise EndedBySignal(number)


def _note(number: int, frame: FrameType | None) -> None:
    """Do nothing: the wake-up descriptor receives the signal's number as a byte."""
