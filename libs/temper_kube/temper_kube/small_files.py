"""The files that a kubeconfig names: certificates and keys, as small regular files."""

import stat
from pathlib import Path

LARGEST_BYTES = 1024 * 1024
"""A bundle of 150 authorities takes 220 KiB."""


def small_file(path: str) -> str:
    """Return *path* if it is a regular file of ``LARGEST_BYTES`` at most. Raise OSError if not.

    Others would be waited for, or read, without end.
    """
    status = Path(path).stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is not a regular file")
    if status.st_size > LARGEST_BYTES:
        raise OSError(f"{path} is larger than {LARGEST_BYTES} bytes")
    return path
