"""Where the map of hints is pinned: a directory that only this user may enter.

Whoever can write to the map can put any thread into any layer, and the engine makes the pin
itself writable for everybody (scx_layered 1.1.4). So it is the directory that keeps others out.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from temper_core.bpf.file_system import MOUNT, is_replaceable
from temper_core.errors import MachineError

OWNER_ONLY = 0o700
PIN_MODE = 0o600
_OTHERS = 0o077


class PinPlace:
    """The pin's path and its directory. Knows by its inode whether the pin is still ours."""

    def __init__(self, path: Path, *, proc_root: Path | str = Path("/proc")) -> None:
        self.path = path
        self._directory = path.parent
        self._mounts = Path(proc_root) / "self/mountinfo"
        self._pinned: tuple[int, int] | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether there has been a pin of ours, whatever stands at the path now."""
        return self._pinned is not None

    def prepare(self) -> None:
        """Make the directory, or take it back to this user alone.

        Root replaces what somebody else put in its place, if that holds nothing. Raises
        MachineError, with cause and remedy, where that is impossible.
        """
        self._check_file_system()
        if is_replaceable(self._directory):
            with suppress(OSError):  # who was quicker again is refused below
                self._directory.rmdir()
        try:
            self._directory.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            found = self._directory.lstat()
        except OSError as error:
            raise MachineError(f"{self._directory}: {_told(error)}") from error
        self._check_owner(found)
        if stat.S_IMODE(found.st_mode) != OWNER_ONLY:
            try:
                self._directory.chmod(OWNER_ONLY)
            except OSError as error:
                raise MachineError(f"{self._directory}: {_told(error)}") from error

    def clear(self) -> bool:
        """Remove whatever stands at the path, and tell whether there was anything.

        It is a pin that an earlier agent left, or one that somebody put in place of ours. Raises
        MachineError where it cannot be removed.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise MachineError(f"{self.path}: {_told(error)}; remove it") from error
        return True

    def sweep(self) -> None:
        """Remove what an agent that was killed left, if the directory is ours. Never fails.

        Only a BPF file system is swept: nobody else has looked at the setting before.
        """
        with suppress(OSError, MachineError):
            self._check_file_system()
            if self._directory.lstat().st_uid == os.geteuid():
                self.path.unlink(missing_ok=True)
                self._directory.rmdir()

    def note(self) -> None:
        """Remember the pin that was just made as ours. Raise MachineError where there is none."""
        try:
            found = self.path.lstat()
        except OSError as error:
            raise MachineError(f"{self.path}: {_told(error)}") from error
        self._pinned = found.st_dev, found.st_ino

    def forget(self) -> None:
        """Know no pin any more."""
        self._pinned = None

    def problem(self) -> str:
        """Return what is wrong with the pin and its directory. Nothing where all is well.

        A pin that others might open is closed to them again without a word: the engine opens it
        at every start.
        """
        try:
            directory, pin = self._directory.lstat(), self.path.lstat()
            if stat.S_IMODE(pin.st_mode) & _OTHERS and self._is_ours(pin):
                self.path.chmod(PIN_MODE)
        except FileNotFoundError as error:
            return f"{error.filename} was deleted"
        except OSError as error:
            return f"{error.filename}: {_told(error)}"
        if directory.st_uid != os.geteuid() or stat.S_IMODE(directory.st_mode) != OWNER_ONLY:
            mode = stat.S_IMODE(directory.st_mode)
            return f"{self._directory} is mode {mode:04o} of uid {directory.st_uid}"
        return "" if self._is_ours(pin) else f"{self.path} is not our map any more"

    def remove(self) -> None:
        """Take our pin away, and the directory if nothing else is in it. Never fails."""
        for step in (self._remove_pin, self._directory.rmdir):
            try:
                step()
            except OSError:
                continue  # somebody else uses it, or it has gone

    def _remove_pin(self) -> None:
        if self._is_ours(self.path.lstat()):
            self.path.unlink()

    def _is_ours(self, found: os.stat_result) -> bool:
        return self._pinned == (found.st_dev, found.st_ino)

    def _check_owner(self, found: os.stat_result) -> None:
        if not stat.S_ISDIR(found.st_mode):
            raise MachineError(f"{self._directory} is no directory; remove it")
        if found.st_uid != os.geteuid():
            raise MachineError(
                f"{self._directory} belongs to uid {found.st_uid}, who could change hints; "
                "remove it, or set [scheduler] steering_pin to another directory"
            )

    def _check_file_system(self) -> None:
        """Raise MachineError unless the directory is, or would be, on a BPF file system."""
        around = (self._directory, *self._directory.parents)
        try:
            standing = next((path for path in around if path.is_dir()), Path("/"))
            device = standing.stat().st_dev
        except OSError as error:  # as for anybody but root where systemd mounted it
            raise MachineError(f"{error.filename}: {_told(error)}") from error
        if f"{os.major(device)}:{os.minor(device)}" not in self._bpf_devices():
            raise MachineError(
                f"{standing} is on no BPF file system, where the map of hints must be pinned; "
                f"mount one: {MOUNT}"
            )

    def _bpf_devices(self) -> set[str]:
        """Return the device numbers of all mounted BPF file systems (proc(5), mountinfo)."""
        try:
            lines = self._mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return set()
        halves = (line.partition(" - ") for line in lines)
        return {left.split()[2] for left, _, right in halves if right.startswith("bpf ")}


def _told(error: OSError) -> str:
    remedies = {
        "Read-only file system": "; mount it writable: mount -o remount,rw /sys/fs/bpf",
        "Permission denied": "; steering needs root, or the owner's rights",
    }
    told = error.strerror or str(error)
    return told + remedies.get(told, "")
