"""A terminal that a command runs on, and what would be seen on it."""

import codecs
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from contextlib import suppress

from tests.patience import PATIENCE_S

USUAL = {"?1049": False, "?25": True, "?7": True, "?1000": False, "?1006": False}
"""Modes of xterm: another screen, the cursor, automatic margins, the mouse and its format."""
CONTROL = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


class PseudoTerminal:
    """Runs *command* as the only job of a new terminal; understands what ``temper top`` writes."""

    def __init__(self, command, width=80, height=24, **environment):
        self.leader, follower = os.openpty()
        self.written = ""
        self.resize(width, height)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.before = termios.tcgetattr(follower)
        unset = {"NO_COLOR", "COLUMNS", "LINES"}
        kept = {key: value for key, value in os.environ.items() if key not in unset}
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command], stdin=follower, stdout=follower, stderr=follower,
            env={**kept, "TERM": "xterm-256color", **environment},
        )  # fmt: skip
        self.follower = follower

    def resize(self, width, height):
        self.size = width, height
        self._clear()
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys):
        os.write(self.leader, keys.encode())

    def send(self, number):
        self.process.send_signal(number)

    def read(self, seconds=0.05):
        ready, _, _ = select.select([self.leader], [], [], seconds)
        if ready:
            with suppress(OSError):
                part = self._decoder.decode(os.read(self.leader, 65_536))
                self.written += part
                self._feed(part)

    def wait_for(self, condition, what):
        """Read until *condition* is true of the screen's lines; return them."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.read()
            if condition(lines := self.screen()):
                return lines
        raise AssertionError(f"no {what}: {self.screen()}")

    def wait_for_end(self):
        """Read until the command has ended; return its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read(0)
        return self.process.poll()

    def is_as_before(self):
        """Whether the terminal's settings, screen, cursor and margins are as they were."""
        state = self._state()
        settings = termios.tcgetattr(self.follower) == self.before
        return settings and state == USUAL

    def _state(self):
        state = dict(USUAL)
        for name, letter in CONTROL.findall(self.written):
            if name in state and letter in "hl":
                state[name] = letter == "h"
        return state

    def screen(self):
        """Return the lines as somebody would see them, styles left out."""
        return ["".join(line).rstrip() for line in self._lines]

    def _clear(self):
        width, height = self.size
        self._lines = [[" "] * width for _ in range(height)]
        self._at, self._held = (0, 0), ""

    def _feed(self, part):
        given, at = self._held + part, 0
        self._held = ""
        while at < len(given):
            if given[at] != "\x1b":
                self._put(given[at])
                at += 1
            elif control := CONTROL.match(given, at):
                self._obey(*control.groups())
                at = control.end()
            else:
                self._held, at = given[at:], len(given)

    def _put(self, letter):
        row, column = self._at
        if letter in "\r\n":
            self._at = (row + (letter == "\n"), 0)
        elif row < len(self._lines) and column < self.size[0]:
            self._lines[row][column] = letter
            self._at = (row, column + 1)

    def _obey(self, given, letter):
        row, column = self._at
        if letter == "J":
            self._clear()
        elif letter == "H":
            row, column = (int(each) - 1 for each in given.split(";"))
            self._at = (row, column)
        elif letter == "K" and row < len(self._lines):
            self._lines[row][column:] = [" "] * (self.size[0] - column)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        for end in (self.leader, self.follower):
            os.close(end)


def written_on(command, end, width):
    """Run *command* on a terminal of *width* columns until it wrote *end*. Return its lines."""
    terminal = PseudoTerminal(command, width=width, height=100, NO_COLOR="1")
    try:
        terminal.wait_for(lambda _: end in terminal.written, end)
        terminal.wait_for_end()
        return terminal.written.replace("\r\n", "\n").splitlines()
    finally:
        terminal.close()
