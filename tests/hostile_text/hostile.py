"""Texts that control a terminal or mislead its reader. Add a line here for each new kind."""

import re
from itertools import count

FORGED = "FORGED-LINE all is well"
TEXTS = {
    "CSI, clear the scrollback": "\x1b[3J",
    "CSI, a colour": "\x1b[38;5;201;5m",
    "CSI, move up": "\x1b[7A",
    "CSI, a report that the terminal types": "\x1b[21t\x1b[6n",
    "OSC, the title": "\x1b]0;root\x07",
    "OSC, the clipboard": "\x1b]52;c;cm0gLXJm\x1b\\",
    "OSC, a link": "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\",
    "DCS, an answer": "\x1bP$q q\x1b\\",
    "ESC, reset": "\x1bc",
    "C1, CSI": "\x9b3J",
    "C1, OSC": "\x9d0;root\x9c",
    "C1, next line": f"\x85{FORGED}",
    "overwritten line": f"\r{FORGED}",
    "erased text": "\x08\x08\x08\x7f",
    "another line": f"\n{FORGED}",
    "another page": f"\x0b\x0c{FORGED}",
    "Unicode's line separators": f"\u2028{FORGED}\u2029{FORGED}",
    "reversed text": "\u202e\u2066live\u2069\u202c",
    "hidden text": "a\u200bb\u2060c\ufeffd\xade",
    "a lone surrogate": "\ud800",
    "the mark of Temper's own sequences": "\x02\x03\x0200\x03\x1b[2m",
    "markup of rich": "[red]x[/red][link=http://evil.example]y[/link]",
}
BETWEEN = "|"
OWN_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
OF_A_SCREEN = re.compile(r"\x1b\[(?:\?(?:1049|1000|1006|25|7)[hl]|2J|K|\d+;1H)")


class Poison:
    """Adds *most* hostile texts to each string, or every one.

    Each string begins with another text, since columns cut what is long.
    """

    def __init__(self, spared=(), most=None):
        self._texts, self._spared, self._next = list(TEXTS.values()), frozenset(spared), count()
        self._most = most

    def text(self, value=""):
        """Return *value* with every text behind it."""
        start = next(self._next) % len(self._texts)
        texts = [*self._texts[start:], *self._texts[:start]][: self._most]
        return BETWEEN.join([value, *texts])

    def each(self, value):
        """Return *value* with each of the texts behind it, for strings that must be short."""
        return [BETWEEN.join([value, text]) for text in self._texts]

    def document(self, value):
        """Return JSON in which every string is hostile, except below the spared keys."""
        if isinstance(value, dict):
            return {
                key: inner if key in self._spared else self.document(inner)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.document(inner) for inner in value]
        return self.text(value) if isinstance(value, str) else value


def has_arrived(output):
    """Whether *output* shows a hostile text, so that a test of it proves something."""
    return any(part in output for part in ("FORGED", "evil.example", "0;root", "3J", "201;5m"))


def leaks(output, *, is_screen=False):
    """Return what in *output* controls the terminal, except Temper's own colours and moves."""
    found = [text for text in TEXTS.values() if "\x1b" in text and text in output]
    rest = OWN_COLOUR.sub("", output)
    rest = OF_A_SCREEN.sub("", rest) if is_screen else rest
    odd = {letter for letter in rest if letter not in "\n\t" and not letter.isprintable()}
    forged = [line for line in rest.splitlines() if line.startswith(FORGED)]
    return [*found, *sorted(odd), *forged]
