"""Finds the directory of a cgroup by its number, at a cost that does not grow with the tree.

A file handle of kernfs is the inode's number (``FILEID_KERNFS``, include/linux/exportfs.h), so
that it can be made without name_to_handle_at(2). Opening it needs ``CAP_DAC_READ_SEARCH`` in the
initial user namespace.
"""

import ctypes
import os
from contextlib import suppress

FILEID_KERNFS = 0xFE
_NUMBER_BYTES = 8


class _Handle(ctypes.Structure):
    """``struct file_handle`` of open_by_handle_at(2), with its bytes."""

    _fields_ = (
        ("handle_bytes", ctypes.c_uint),
        ("handle_type", ctypes.c_int),
        ("number", ctypes.c_ulonglong),
    )


class CgroupHandles:
    """Opens cgroups below *root*, the mount point of the unified hierarchy, by number."""

    def __init__(self, root: str) -> None:
        self._root = os.fsencode(root)
        self._open_by_handle_at = ctypes.CDLL(None, use_errno=True).open_by_handle_at
        self._mount = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def path_of(self, number: int) -> str | None:
        """Return the path below the root, with a leading slash unless it is the root itself.

        None for a cgroup that is gone, is outside of the root, or has a path of more than a page.
        Raises PermissionError without the right to open handles, and any other OSError.
        """
        handle = _Handle(_NUMBER_BYTES, FILEID_KERNFS, number)
        flags = os.O_PATH | os.O_CLOEXEC
        descriptor = self._open_by_handle_at(self._mount, ctypes.byref(handle), flags)
        if descriptor < 0:
            error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            if isinstance(error, PermissionError):
                raise error
            return None
        try:
            with suppress(OSError):
                path = os.readlink(b"/proc/self/fd/%d" % descriptor)  # noqa: PTH115 - bytes
                if path == self._root or path.startswith(self._root + b"/"):
                    return path.removeprefix(self._root).decode("utf-8", "replace")
            return None
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the mount point."""
        os.close(self._mount)
