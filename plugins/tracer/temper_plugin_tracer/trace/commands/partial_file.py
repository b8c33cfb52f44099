"""Files that appear when they are whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from temper_core import InputError


@contextmanager
def written_whole(out: Path) -> Iterator[IO[bytes]]:
    """Open a file beside *out*, which takes its place at the end of the block.

    Only its user may read it, since what all processes do at each moment is not public. It is
    removed if the block raises. A device or a pipe, such as ``/dev/null``, keeps its place and is
    written itself. Raises InputError if *out* cannot be written, or is a link to anything else.
    """
    if _is_special(out):
        with _written_itself(out) as file:
            yield file
        return
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb", opener=_private) as file:
            yield file
        partial.replace(out)
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _is_special(out: Path) -> bool:
    """Whether *out* is a device or a pipe. Raises InputError for a link that is not followed."""
    try:
        is_special = out.exists() and not out.is_file()
        if out.is_symlink() and not (is_special and out.lstat().st_uid in {0, os.geteuid()}):
            raise InputError(f"{out}: is a link; name the file itself")
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from error
    return is_special


@contextmanager
def _written_itself(out: Path) -> Iterator[IO[bytes]]:
    try:
        with out.open("wb", buffering=0) as file:
            yield file
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
