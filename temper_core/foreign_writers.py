"""Checks which other users may change a file that this process trusts."""

import os
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

ACCESS_LIST = "system.posix_acl_access"
"""The extended attribute of a POSIX access control list (acl(5)): a version, then entries."""
_VERSION, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER, _GROUP, _MASK = 0x02, 0x08, 0x10
"""Tags of entries (include/uapi/linux/posix_acl.h)."""
_WRITE = 0x02


def foreign_writer(path: Path) -> str:
    """Return which users besides root and this user may change the file at *path*, empty for none.

    Links are followed. A user that may write a directory above may replace the file, unless the
    directory is sticky (inode(7)), as /tmp is. For a missing file the result is empty.
    """
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return ""
    # A user that may write a directory that holds a link may replace the link.
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
            yield from _listed_writers(place)


def _listed_writers(place: Path) -> Iterator[str]:
    """Yield the users and groups that may write *place* by an access control list."""
    try:
        content = os.getxattr(place, ACCESS_LIST)
        entries = [*_ENTRY.iter_unpack(content[_VERSION.size :])]
    except (OSError, struct.error):  # it has no list
        return
    mask = next((rights for tag, rights, _ in entries if tag == _MASK), _WRITE)
    own = {_USER: ("user", os.geteuid()), _GROUP: ("group", os.getegid())}
    for tag, rights, number in entries:
        if tag in own and rights & mask & _WRITE and number not in (0, own[tag][1]):
            yield f"{own[tag][0]} {number} may write {place}, by its access control list"
