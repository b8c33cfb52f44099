"""Decodes the bytes of a terminal: special keys by name, characters as they are."""

import codecs
import re

from attrs import define, field

ESCAPE = "escape"
NAMED = {
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "kill",
    "\x1b": ESCAPE,
}
SEQUENCES = {
    "A": "up",
    "B": "down",
    "H": "home",
    "F": "end",
    "Z": "back-tab",
    "1~": "home",
    "4~": "end",
    "5~": "page-up",
    "6~": "page-down",
}
LONGEST_SEQUENCE = 16
BUTTON = re.compile(r"<(\d{1,3});(\d{1,4});(\d{1,4})M")
"""A pressed button with column and line from 1 (xterm's control sequences, SGR mouse mode)."""
MODIFIERS = 0b11100
"""The bits of shift, meta and control in the number of a button."""
LEFT = 0
WHEEL = {64: "wheel-up", 65: "wheel-down"}


@define
class KeyReader:
    """Decodes bytes of a terminal into keys. Keeps an incomplete sequence for the next call.

    An escape at the end of the bytes is the Escape key, since terminals send a sequence at once.
    """

    _decoder: codecs.IncrementalDecoder = field(
        factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _held: str = ""

    def keys(self, data: bytes) -> list[str]:
        """Return the keys in *data*, without unknown sequences and other control characters."""
        rest, self._held = self._held + self._decoder.decode(data), ""
        pressed = []
        while rest:
            key, rest = self._next(rest)
            if key:
                pressed.append(key)
        return pressed

    def _next(self, text: str) -> tuple[str, str]:
        if text[0] == "\x1b" and text[1:2] in ("[", "O"):
            return self._sequence(text)
        key = NAMED.get(text[0]) or (text[0] if text[0].isprintable() else "")
        return key, text[1:]

    def _sequence(self, text: str) -> tuple[str, str]:
        """Read ``ESC [ parameters final``, where the final one is a letter or a tilde."""
        for at, letter in enumerate(text[2 : 2 + LONGEST_SEQUENCE], start=3):
            if "@" <= letter <= "~":
                sequence = text[2:at]
                return SEQUENCES.get(sequence) or _button(sequence), text[at:]
        if len(text) < 2 + LONGEST_SEQUENCE:
            self._held = text
        return "", ""


def _button(sequence: str) -> str:
    """Return ``click COLUMN LINE`` of the left button, the turn of the wheel, or nothing."""
    found = BUTTON.fullmatch(sequence)
    if found is None:
        return ""
    button = int(found[1]) & ~MODIFIERS
    return f"click {found[2]} {found[3]}" if button == LEFT else WHEEL.get(button, "")
