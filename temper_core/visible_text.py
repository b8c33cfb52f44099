"""Text from outside, which must not control the terminal that shows it.

Control characters (C0, DEL and C1), line separators, surrogates and the marks that reorder or hide
text (bidirectional overrides, zero width) are not printable by Unicode, and are replaced. See
``str.isprintable``, and https://trojansource.codes for the reordering marks.
"""

import os
from functools import lru_cache

TYPE_CHECKING = False  # typing is slow to import, and every start would wait for it
if TYPE_CHECKING:
    from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
KEPT = frozenset("\n\t")


def printable(text: str) -> str:
    """Return *text* as one line that cannot control a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else REPLACEMENT for letter in text)


def visible(text: str) -> str:
    """Return *text* without control of a terminal. Its lines and tabulators are kept."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter in KEPT or letter.isprintable() else REPLACEMENT for letter in text
    )


def own_sequences(text: str, stream: "Any") -> str:  # noqa: ANN401 - any stream of text
    """Return *text* marked for *stream*, which then writes its control sequences unchanged.

    Only for text whose control sequences are Temper's own. Text from outside inside it must be
    printable already. A stream that is not guarded by ``deliver`` gets the text without marks.
    """
    if not getattr(stream, "makes_visible", False):
        return text
    mark = _mark()
    return f"{mark}{text}{mark}"


def filtered(text: str) -> str:
    """Return *text* as a guarded stream writes it: visible, with Temper's own sequences."""
    if text.isprintable() or "\x02" not in text:
        return visible(text)
    parts = text.split(_mark())
    # The parts at odd places are between two marks.
    return "".join(part if at % 2 else visible(part) for at, part in enumerate(parts))


@lru_cache(maxsize=1)
def _mark() -> str:
    """Return the mark of this process. It is random, so that no text from outside can hold it."""
    return f"\x02{os.urandom(16).hex()}\x03"
