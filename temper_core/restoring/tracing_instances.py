"""The instances of tracefs that Temper's plugins have made, and their removal.

Such an instance is named ``temper-...``. Its maker holds a lock (flock(2)) on its directory, which
the kernel releases with the maker. So an instance without a lock is left of a process that ended.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from temper_core.kernel_text import kernel_lines, read_kernel_text
from temper_core.records.restored import Leftover, Restored
from temper_core.restoring.reasons import failure

PREFIX = "temper-"
INSTANCES = "instances"
IN_USE = "a process records into this instance"
_MOUNT_FIELDS = 5


def tracefs_mounts(proc_root: Path = Path("/proc")) -> tuple[Path, ...]:
    """Return where a whole tracefs is mounted (proc(5), mountinfo)."""
    try:
        text = read_kernel_text(proc_root / "self/mountinfo")
    except OSError:
        return ()
    return tuple(_mounts(text))


def remove_tracing_instances(proc_root: Path = Path("/proc"), *, is_dry: bool = False) -> Restored:
    """Remove Temper's instances that no process holds. With *is_dry* only report them.

    All mounts of tracefs show the same instances, so the first that can be read is enough.
    """
    for mount in tracefs_mounts(proc_root):
        with suppress(OSError):
            paths = sorted((mount / INSTANCES).iterdir())
            return _cleared(paths, is_dry=is_dry)
    return Restored()


def is_held(directory: int) -> bool:
    """Whether a process holds the lock of an instance whose *directory* is open."""
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _mounts(text: str) -> Iterator[Path]:
    for line in kernel_lines(text):
        before, _, after = line.partition(" - ")
        left = before.split(" ")
        if after.startswith("tracefs ") and len(left) >= _MOUNT_FIELDS and left[3] == "/":
            yield Path(left[4].replace("\\040", " "))


def _cleared(paths: list[Path], *, is_dry: bool) -> Restored:
    removed: list[str] = []
    leftovers: list[Leftover] = []
    for path in paths:
        if not path.name.startswith(PREFIX):
            continue
        try:
            if _remove(path, is_dry=is_dry):
                removed.append(str(path))
            else:
                leftovers.append(Leftover(str(path), IN_USE, is_kept=True))
        except FileNotFoundError:
            continue
        except OSError as error:
            leftovers.append(failure(str(path), error))
    return Restored(tuple(removed), tuple(leftovers))


def _remove(path: Path, *, is_dry: bool) -> bool:
    """Remove an instance unless a process holds it, or has one of its files open."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if is_held(descriptor):
            return False
        if not is_dry:
            path.rmdir()
    except OSError as error:
        if error.errno == errno.EBUSY:
            return False
        raise
    finally:
        os.close(descriptor)
    return True
