"""Plain text for people: columns, ages and lists that do not run away."""

from collections.abc import Sequence

MOST_NAMED = 5
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines in which each column is as wide as its widest cell."""
    shown = [[printable(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[at]) for row in shown) for at in range(len(heads))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
             for row in shown)  # fmt: skip
    return [line.rstrip() for line in lines]


def age(seconds: float | None) -> str:
    """Return an age in its largest unit: 12s, 5m, 3h, 2d."""
    if seconds is None:
        return "-"
    for size, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def named(names: Sequence[str]) -> str:
    """Return names, the first few and how many more there are."""
    first = ", ".join(names[:MOST_NAMED])
    return f"{first} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else first


def printable(text: str) -> str:
    """Return *text* as one line that cannot steer a terminal: nodes may have written anything."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
