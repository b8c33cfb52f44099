"""The BPF file system, on which maps are pinned: how to mount it, and who was there first."""

import os
import stat
from pathlib import Path

MOUNT = "mount -t bpf -o mode=700 bpf /sys/fs/bpf"
"""Without a mode anybody could make directories there, before the agent makes its own."""


def is_replaceable(directory: Path) -> bool:
    """Whether this user is root, and *directory* an empty one of somebody else.

    Links are not followed. ``rmdir(2)`` follows none either, and removes nothing that is in use.
    """
    try:
        found = directory.lstat()
        is_foreign = stat.S_ISDIR(found.st_mode) and found.st_uid != os.geteuid()
        return os.geteuid() == 0 and is_foreign and next(directory.iterdir(), None) is None
    except OSError:
        return False
