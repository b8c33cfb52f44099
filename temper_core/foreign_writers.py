"""Checks which other users may change a file that this process trusts."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def foreign_writer(path: Path) -> str:
    """Return which users besides root and this user may change the file at *path*, empty for none.

    Links are followed. A user who may write a directory above may replace the file, unless the
    directory is sticky (inode(7)), as /tmp is. For a missing file the result is empty.
    """
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return ""
    # A user who may write a directory that holds a link may replace the link.
    above = dict.fromkeys((*target.parents, *path.absolute().parents))
    return next(_writers(target, above), "")


def _writers(target: Path, above: Iterable[Path]) -> Iterator[str]:
    for place in (target, *above):
        with suppress(OSError):
            status = place.stat()
            is_above = place != target
            if status.st_uid not in (0, os.geteuid()):
                yield f"user {status.st_uid} owns {place}"
            if is_above and status.st_mode & stat.S_ISVTX:
                continue
            if status.st_mode & stat.S_IWOTH:
                yield f"every user may write {place}"
            if status.st_mode & stat.S_IWGRP and status.st_gid not in (0, os.getegid()):
                yield f"group {status.st_gid} may write {place}"
