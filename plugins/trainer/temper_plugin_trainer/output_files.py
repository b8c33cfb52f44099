"""Files that a command makes: reserved before the work, and removed if it fails."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from temper_core import InputError

PRIVATE = 0o600
"""The mode of files with the command lines of processes, which other users may not see."""
SHARED = 0o666
"""The mode of files that others may read. The umask still takes bits away."""


@contextmanager
def reserved(output: Path, mode: int = PRIVATE) -> Iterator[FileIO | None]:
    """Create the file before the work, and remove it if that fails. ``-`` is none.

    Its mode is *mode*, less the umask's bits. It stays open, since the owner of its directory may
    put a link in its place meanwhile. Raises InputError if it exists or cannot be made.
    """
    if str(output) == "-":
        yield None
        return
    try:
        file = created(output, mode)
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


def created(path: Path, mode: int) -> FileIO:
    """Create the file at *path*. Raise OSError, FileExistsError if there is one."""
    return FileIO(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")


def write_whole(file: FileIO, content: bytes, path: Path) -> None:
    """Write all of *content*. Raise InputError, which names *path*, if that fails."""
    left = content
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
