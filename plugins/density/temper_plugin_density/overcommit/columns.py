"""Text in columns, for people and for pipes alike."""

from collections.abc import Sequence

from temper_plugin_density.plain_text import plain


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Return *rows* with their cells one below the other; the last column is as wide as it is."""
    rows = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
