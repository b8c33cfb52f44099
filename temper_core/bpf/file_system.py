"""The BPF file system for pinned maps: the mount command, and foreign directories on it."""

import os
import stat
from pathlib import Path

MOUNT = "mount -t bpf -o mode=700 bpf /sys/fs/bpf"
"""Without the mode any user could make directories there before the agent makes its own."""


def is_replaceable(directory: Path) -> bool:
    """Whether this user is root and *directory* is an empty one of another user.

    Links are not followed. ``rmdir(2)`` follows none either, and removes no directory in use.
    """
    try:
        status = directory.lstat()
        is_foreign = stat.S_ISDIR(status.st_mode) and status.st_uid != os.geteuid()
        return os.geteuid() == 0 and is_foreign and next(directory.iterdir(), None) is None
    except OSError:
        return False
