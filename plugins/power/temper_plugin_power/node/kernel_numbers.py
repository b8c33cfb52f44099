"""Reads the numbers that the kernel's files hold."""

from pathlib import Path

LARGEST_BYTES = 64


def read_text(path: Path) -> str:
    """Return the line of a small file. Raise OSError if it cannot be read."""
    with path.open("rb") as file:
        return file.read(LARGEST_BYTES).decode(errors="replace").strip()


def read_number(path: Path) -> int | None:
    """Return the unsigned number in a file, None if there is none. Raise OSError as above."""
    text = read_text(path)
    return int(text) if text.isascii() and text.isdigit() else None


def known_number(path: Path) -> int | None:
    """Return the unsigned number in a file, None if it cannot be read."""
    try:
        return read_number(path)
    except OSError:
        return None
