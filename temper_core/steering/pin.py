"""The pin of the map of hints, in a directory that only this user may enter.

A process that can write to the map can put any thread into any layer. The engine makes the pin
world-writable (scx_layered 1.1.4), so the directory has to keep other users out.
"""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from temper_core.bpf.file_system import MOUNT, is_replaceable
from temper_core.directory_tree import make_directories, nearest_existing
from temper_core.errors import MachineError
from temper_core.kernel_text import kernel_lines, read_kernel_text

OWNER_ONLY = 0o700
PIN_MODE = 0o600
_OTHERS = 0o077

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class PinPlace:
    """The pin's path and its directory. The inode shows whether the pin is still ours."""

    def __init__(self, path: Path, *, proc_root: Path | str = Path("/proc")) -> None:
        self.path = path
        self._directory = path.parent
        self._mounts = Path(proc_root) / "self/mountinfo"
        self._pinned: tuple[int, int] | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether we have made a pin. It may have been removed or replaced since."""
        return self._pinned is not None

    def ensure(self, pin: Callable[[Path], None], lost: Callable[[], None]) -> None:
        """Call *pin* with the path unless the map is pinned there for us alone.

        *lost* is called first if it was pinned there before. Raises MachineError.
        """
        problem = self.problem()
        if not problem:
            return
        self.prepare()
        if self.is_pinned:
            log.warning("pin_lost", reason=problem)
            lost()
            if not self.problem():
                return
        if self.clear():
            log.warning("other_pin_removed", path=str(self.path))
        self.forget()
        try:
            pin(self.path)
        except OSError as error:
            raise MachineError(f"{self.path}: {_reason(error)}") from error
        self.note()

    def prepare(self) -> None:
        """Make the directory, or restrict it to this user again.

        Root replaces an empty directory of another user. Raises MachineError, with cause and
        remedy, if that is impossible.
        """
        self._check_file_system()
        if is_replaceable(self._directory):
            with suppress(OSError):  # a directory that reappears is refused below
                self._directory.rmdir()
        try:
            make_directories(self._directory, OWNER_ONLY)
            status = self._directory.lstat()
        except OSError as error:
            raise MachineError(f"{self._directory}: {_reason(error)}") from error
        self._check_owner(status)
        if stat.S_IMODE(status.st_mode) != OWNER_ONLY:
            try:
                self._directory.chmod(OWNER_ONLY)
            except OSError as error:
                raise MachineError(f"{self._directory}: {_reason(error)}") from error

    def clear(self) -> bool:
        """Remove any entry at the path. Return whether there was one.

        It is the pin of an earlier agent, or one that replaced ours. Raises MachineError if it
        cannot be removed.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise MachineError(f"{self.path}: {_reason(error)}; remove it") from error
        return True

    def sweep(self) -> None:
        """Remove the pin of a killed agent if the directory is ours. Never fails.

        It acts only on a BPF file system, because the setting has not been checked before.
        """
        with suppress(OSError, MachineError):
            self._check_file_system()
            if self._directory.lstat().st_uid == os.geteuid():
                self.path.unlink(missing_ok=True)
                self._directory.rmdir()

    def note(self) -> None:
        """Record the pin that was just made as ours. Raise MachineError if there is none."""
        try:
            status = self.path.lstat()
        except OSError as error:
            raise MachineError(f"{self.path}: {_reason(error)}") from error
        self._pinned = status.st_dev, status.st_ino

    def forget(self) -> None:
        """Forget the recorded pin."""
        self._pinned = None

    def problem(self) -> str:
        """Return the fault of the pin or its directory, empty if there is none.

        A pin with access for others is closed to them again silently, because the engine opens it
        at every start.
        """
        try:
            directory, pin = self._directory.lstat(), self.path.lstat()
            if stat.S_IMODE(pin.st_mode) & _OTHERS and self._is_ours(pin):
                self.path.chmod(PIN_MODE)
        except FileNotFoundError as error:
            return f"{error.filename} was deleted"
        except OSError as error:
            return f"{error.filename}: {_reason(error)}"
        if directory.st_uid != os.geteuid() or stat.S_IMODE(directory.st_mode) != OWNER_ONLY:
            mode = stat.S_IMODE(directory.st_mode)
            return f"{self._directory} is mode {mode:04o} of uid {directory.st_uid}"
        return "" if self._is_ours(pin) else f"{self.path} is not our map any more"

    def remove(self) -> None:
        """Remove our pin, and the directory if it is then empty. Never fails."""
        for step in (self._remove_pin, self._directory.rmdir):
            try:
                step()
            except OSError:
                continue  # another process uses it, or it is gone

    def _remove_pin(self) -> None:
        if self._is_ours(self.path.lstat()):
            self.path.unlink()

    def _is_ours(self, status: os.stat_result) -> bool:
        return self._pinned == (status.st_dev, status.st_ino)

    def _check_owner(self, status: os.stat_result) -> None:
        if not stat.S_ISDIR(status.st_mode):
            raise MachineError(f"{self._directory} is not a directory; remove it")
        if status.st_uid != os.geteuid():
            raise MachineError(
                f"{self._directory} belongs to uid {status.st_uid}, which could change hints; "
                "remove it, or set [scheduler] steering_pin to another directory"
            )

    def _check_file_system(self) -> None:
        """Raise MachineError unless the directory is, or would be, on a BPF file system."""
        try:
            existing = nearest_existing(self._directory)
            device = existing.stat().st_dev
        except OSError as error:  # a BPF file system that systemd mounted admits only root
            raise MachineError(f"{error.filename}: {_reason(error)}") from error
        if f"{os.major(device)}:{os.minor(device)}" not in self._bpf_devices():
            raise MachineError(
                f"{existing} is not on a BPF file system, where the map of hints must be pinned; "
                f"mount one: {MOUNT}"
            )

    def _bpf_devices(self) -> set[str]:
        """Return the device numbers of all mounted BPF file systems (proc(5), mountinfo)."""
        try:
            lines = kernel_lines(read_kernel_text(self._mounts))
        except OSError:
            return set()
        halves = (line.partition(" - ") for line in lines)
        return {
            mount.split(" ")[2]
            for mount, _, file_system in halves
            if file_system.startswith("bpf ")
        }


def _reason(error: OSError) -> str:
    remedies = {
        "Read-only file system": "; mount it writable: mount -o remount,rw /sys/fs/bpf",
        "Permission denied": "; steering needs root, or the owner's rights",
    }
    message = error.strerror or str(error)
    return message + remedies.get(message, "")
