"""Files that appear when they are whole."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from temper_core import InputError

HANDLE = os.O_PATH | os.O_CLOEXEC
"""Flags of a descriptor that stands for a file and opens nothing."""


@contextmanager
def written_whole(out: Path) -> Iterator[IO[bytes]]:
    """Open a file beside *out*, which takes its place at the end of the block.

    Only its user may read it, since what all processes do at each moment is not public. It is
    removed if the block raises. A device or a pipe, such as ``/dev/null``, keeps its place and is
    written itself. Raises InputError if *out* cannot be written, or is a link to anything else.
    """
    handle = _special(out)
    if handle is not None:
        with _written_itself(handle, out) as file:
            yield file
        return
    with _beside(out) as (partial, file):
        yield file
        file.close()
        partial.replace(out)


def refuse_unwritable(out: Path) -> None:
    """Raise InputError if ``written_whole`` cannot write *out* as things are. Nothing changes."""
    handle = _special(out)
    if handle is None:
        with _beside(out):
            return
    try:
        # A pipe is not opened: its reader would take that for the whole trace.
        if not os.access(f"/proc/self/fd/{handle}", os.W_OK):
            raise InputError(f"{out}: {os.strerror(errno.EACCES)}")
    finally:
        os.close(handle)


@contextmanager
def _beside(out: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Open a file in the directory of *out*, which is removed if it still has its name."""
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb", opener=_private) as file:
            yield partial, file
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _special(out: Path) -> int | None:
    """Return a handle of the device or the pipe at *out*, None for anything else.

    The handle keeps its file, whatever the owner of the directory puts in its place. Raises
    InputError for a link that is not followed.
    """
    try:
        handle = os.open(out, HANDLE | os.O_NOFOLLOW)
        if stat.S_ISLNK(os.fstat(handle).st_mode):
            return _end_of_link(handle, out)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return _of_own(handle, out)
        os.close(handle)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from error
    return None


def _end_of_link(link: int, out: Path) -> int:
    """Return a handle of what *link* leads to. Close the link. Raises InputError, OSError."""
    try:
        is_own = os.fstat(link).st_uid in {0, os.geteuid()}
        target = out.parent / os.readlink("", dir_fd=link)
    finally:
        os.close(link)
    handle = -1
    if is_own:
        with suppress(FileNotFoundError):
            handle = os.open(target, HANDLE)
    if handle >= 0 and not stat.S_ISREG(os.fstat(handle).st_mode):
        return _of_own(handle, out)
    if handle >= 0:
        os.close(handle)
    raise InputError(f"{out}: is a link; name the file itself")


def _of_own(handle: int, out: Path) -> int:
    """Return *handle*. Close it and raise InputError for a directory or a third user's file."""
    status = os.fstat(handle)
    user, is_directory = status.st_uid, stat.S_ISDIR(status.st_mode)
    if user in {0, os.geteuid()} and not is_directory:
        return handle
    os.close(handle)
    if is_directory:
        raise InputError(f"{out}: is a directory")
    raise InputError(
        f"{out}: is no file, and belongs to user {user}, who would read what is private"
    )


@contextmanager
def _written_itself(handle: int, out: Path) -> Iterator[IO[bytes]]:
    """Open the file of *handle*, which is closed. A handle itself cannot be written (open(2))."""
    try:
        try:
            descriptor = os.open(f"/proc/self/fd/{handle}", os.O_WRONLY | os.O_CLOEXEC)
        finally:
            os.close(handle)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            yield file
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
