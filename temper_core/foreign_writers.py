"""Checks which other users may change a file that this process trusts."""

import os
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

ACCESS_LIST = "system.posix_acl_access"
"""The extended attribute of a POSIX access control list (acl(5)): a version, then entries."""
_VERSION, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
_USER, _GROUP, _MASK = 0x02, 0x08, 0x10
"""Tags of entries (include/uapi/linux/posix_acl.h)."""
_WRITE = 0x02
MOST_LINKS = 40
"""The kernel follows no more in one path (path_resolution(7))."""


def foreign_writer(path: Path) -> str:
    """Return which users besides root and this user may change the file at *path*, empty for none.

    Links are followed, and each of them may lead through directories of its own. A user that may
    write one of these may replace the file or the link, unless the directory is sticky (inode(7)),
    as /tmp is. A missing file is changed by those who may make one of its name, in a sticky
    directory too: they may have removed it for this look.
    """
    *above, target = _steps(path)
    return next(_writers(target, reversed(above)), "")


def _steps(path: Path) -> Iterator[Path]:
    """Yield the directories and links that *path* leads through, and its file as the last.

    They are those of path_resolution(7). Where one is missing or cannot be looked at, the last is
    the directory in which it would be, and so after too many links.
    """
    place, names, links = Path("/"), [*reversed(path.absolute().parts[1:])], 0
    yield place
    while names:
        name = names.pop()
        if name == "..":
            place = place.parent
            continue
        step = place / name
        try:
            is_link = stat.S_ISLNK(step.lstat().st_mode)
            target = step.readlink() if is_link else None
        except OSError:
            yield place
            return
        yield step
        if target is None:
            place = step
            continue
        links += 1
        if links > MOST_LINKS:
            yield place
            return
        place = Path("/") if target.is_absolute() else place
        names += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def _writers(target: Path, above: Iterable[Path]) -> Iterator[str]:
    for place in (target, *above):
        try:
            status = place.lstat()
        except OSError:  # it was there a moment ago
            yield f"somebody removes {place}"
            continue
        if status.st_uid not in (0, os.geteuid()):
            yield f"user {status.st_uid} owns {place}"
        if stat.S_ISLNK(status.st_mode):  # every link has the mode 0777
            continue
        if place != target and status.st_mode & stat.S_ISVTX:
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
