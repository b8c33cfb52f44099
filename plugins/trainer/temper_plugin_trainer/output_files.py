"""Files that a command makes: reserved before the work, and removed if it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from temper_core import InputError


@contextmanager
def reserved(output: Path) -> Iterator[FileIO | None]:
    """Create the file before the work, and remove it if that fails. ``-`` is none.

    It stays open, since the owner of its directory may put a link in its place meanwhile.
    Raises InputError if it exists or cannot be made.
    """
    if str(output) == "-":
        yield None
        return
    try:
        file = output.open("xb", buffering=0)
    except FileExistsError as error:
        why = "already exists; remove it or name another file"
        raise InputError(f"{output}: {why}") from error
    except OSError as error:
        raise InputError(f"{output}: {error.strerror or error}") from error
    is_written = False
    try:
        with file:
            yield file
        is_written = True
    finally:
        if not is_written:
            output.unlink(missing_ok=True)


def write_whole(file: FileIO, content: bytes, path: Path) -> None:
    """Write all of *content*. Raise InputError, which names *path*, if that fails."""
    left = content
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
