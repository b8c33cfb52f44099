"""The directory of the sockets of Perfetto's services, which no other user may enter.

``traced`` checks no user. Any client of its socket can have it write files. Any user can read the
name of an abstract socket in ``/proc/net/unix``, and such a socket has no mode (unix(7)). So the
sockets are files.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "temper-perfetto-"


def make_socket_directory() -> Path:
    """Make a directory of mode 0700, and remove those of processes that were killed.

    Raises OSError.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_left(path):
            shutil.rmtree(path, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


def remove_socket_directory(path: Path) -> None:
    """Remove the directory and its sockets."""
    shutil.rmtree(path, ignore_errors=True)


def _is_left(path: Path) -> bool:
    """Whether *path* is of this user, and its process has ended."""
    pid = path.name.removeprefix(PREFIX).partition("-")[0]
    with suppress(OSError):
        is_own = path.lstat().st_uid == os.geteuid()
        return is_own and pid.isdecimal() and not Path("/proc", pid).exists()
    return False
