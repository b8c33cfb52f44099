"""The known word that a mistyped one was probably meant to be."""

from collections.abc import Iterable

MOST_WRONG = 2
"""Letters. Two that are swapped count as two."""


def similar(word: str, known: Iterable[str]) -> str | None:
    """Return the word of *known* that differs from *word* in one place, None if there is none.

    It takes time in proportion to the letters, as *word* may come from any user.
    """
    rated = [(_wrong(word, each), each) for each in known]
    wrong, best = min(rated, default=(len(word), ""))
    return best if best and wrong <= min(MOST_WRONG, len(best) // 2) else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown *word*: ``; did you mean 'x'?``, or nothing."""
    meant = similar(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def _wrong(word: str, known: str) -> int:
    """Return the letters between the common beginning and the common end."""
    longest = max(len(word), len(known))
    if abs(len(word) - len(known)) > MOST_WRONG:
        return longest
    shortest = min(len(word), len(known))
    start = next((n for n in range(shortest) if word[n] != known[n]), shortest)
    rest = shortest - start
    end = next((n for n in range(rest) if word[-1 - n] != known[-1 - n]), rest)
    return longest - start - end
