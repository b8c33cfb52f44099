"""What the bytes of a terminal say: keys by name, characters as they are."""

import codecs

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


@define
class KeyReader:
    """Turns what was read of a terminal into keys. Keeps what is not complete for the next time.

    An escape at the very end of what was read is the key: terminals send a sequence at once.
    """

    _decoder: codecs.IncrementalDecoder = field(
        factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    _held: str = ""

    def keys(self, data: bytes) -> list[str]:
        """Return the keys in *data*, unknown sequences and other control characters left out."""
        given, self._held = self._held + self._decoder.decode(data), ""
        found = []
        while given:
            key, given = self._next(given)
            if key:
                found.append(key)
        return found

    def _next(self, given: str) -> tuple[str, str]:
        if given[0] == "\x1b" and given[1:2] in ("[", "O"):
            return self._sequence(given)
        key = NAMED.get(given[0]) or (given[0] if given[0].isprintable() else "")
        return key, given[1:]

    def _sequence(self, given: str) -> tuple[str, str]:
        """Read ``ESC [ parameters final``, where the final one is a letter or a tilde."""
        for at, letter in enumerate(given[2 : 2 + LONGEST_SEQUENCE], start=3):
            if "@" <= letter <= "~":
                return SEQUENCES.get(given[2:at], ""), given[at:]
        if len(given) < 2 + LONGEST_SEQUENCE:
            self._held = given
        return "", ""
