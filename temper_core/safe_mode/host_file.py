"""The host's switch for safe mode: a file, with one line per request made by this tool.

While the file exists, with any content, every agent with this path stays in safe mode. A line that
this tool did not write is another request and is never removed. Its writers take turns.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from temper_core.directory_tree import make_directories, sync_directory
from temper_core.errors import MachineError
from temper_core.safe_mode.file_turns import turn_in
from temper_core.safe_mode.model import LONGEST_REASON, REQUESTER_PATTERN, Request

LARGEST_FILE_BYTES = 64 * 1024
_OURS = re.compile(rf"temper safe-mode on by (?P<requester>{REQUESTER_PATTERN}) \(uid \d+\) at ")


def _always() -> None:
    """Let every change be made."""


@frozen
class SafeModeFile:
    """The file at *path*. ``add`` and ``remove`` raise MachineError if they cannot change it.

    They call *confirm* just before a change is seen by others. It stops the change by any error
    that is no OSError.
    """

    path: Path
    confirm: Callable[[], None] = _always

    def lines(self) -> tuple[str, ...] | None:
        """Return the file's lines, None if there is no file. An unreadable file has one line."""
        try:
            text = self._text()
        except OSError as error:
            return (f"cannot be read: {error.strerror or error}",)
        if text is None:
            return None
        return tuple(line for line in text.decode(errors="replace").splitlines() if line.strip())

    def request(self, clock: Callable[[], float] = time.time) -> Request | None:
        """Return the file's request, None if there is no file.

        A path that cannot be examined requests safe mode too, from now on.
        """
        try:
            since = self.path.lstat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return Request(f"{self.path} cannot be examined: {error.strerror}", clock())
        return Request(self._reason() or f"{self.path} is there", since)

    def add(self, requester: str, reason: str) -> str:
        """Create the file, or add to it, in *requester*'s name. Return a note on what is missing.

        An unreadable file, and a link, stays as it is, because it requests safe mode already. If no
        text can be written, an empty file requests it: its existence counts, and it takes no block
        of a full disk.
        """
        with suppress(OSError):  # a turn needs the directory
            make_directories(self.path.parent)
        with turn_in(self.path.parent):
            return self._add(requester, reason)

    def _add(self, requester: str, reason: str) -> str:
        try:
            text = self._text() or b""
        except OSError as error:
            return f" (it stays as it is: {error.strerror or error})"
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = f"temper safe-mode on by {requester} (uid {os.getuid()}) at {when}"
        line = f"{line}: {reason}" if reason else line
        try:
            make_directories(self.path.parent)
            self._replace(_ended(_without(text, requester)) + f"{line}\n".encode())
        except OSError as error:
            self.confirm()
            if text:
                self._append(b"" if text.endswith(b"\n") else b"\n", line, error)
                return ""
            return self._leave_empty(error)
        return ""

    def remove(self, requester: str) -> bool:
        """Remove *requester*'s line, and the file with its last line. Return False without one."""
        with turn_in(self.path.parent):
            return self._remove(requester)

    def _remove(self, requester: str) -> bool:
        try:
            text = self._text() or b""
        except OSError:
            return False
        left = _without(text, requester)
        if left == text:
            return False
        try:
            if left.strip():
                self._replace(left)
            else:
                self.confirm()
                self.path.unlink(missing_ok=True)
                sync_directory(self.path.parent)
        except OSError as error:
            raise MachineError(f"cannot change {self.path}: {error.strerror or error}") from error
        return True

    def _append(self, end: bytes, line: str, error: OSError) -> None:
        """Write into the last block of a file that cannot be replaced: on a full disk it has room.

        Raises MachineError if there is no room.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        added = end + f"{line}\n".encode()
        try:
            descriptor = os.open(self.path, flags)
            try:
                size = os.fstat(descriptor).st_size
                if os.write(descriptor, added) < len(added):
                    os.ftruncate(descriptor, size)  # nobody could withdraw a part of a line
                    raise error
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as second:
            raise MachineError(
                f"cannot write {self.path}: {second.strerror or second}; what it holds requests "
                "safe mode until that is withdrawn"
            ) from error

    def _leave_empty(self, error: OSError) -> str:
        """Make sure that a file exists after *error*. Raise MachineError if none can be made."""
        try:
            if not os.path.lexists(self.path):
                flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(self.path, flags, 0o644))
                sync_directory(self.path.parent)
        except OSError as second:
            raise MachineError(f"cannot write {self.path}: {second.strerror or second}") from error
        return (
            f" (without requester and reason: {error.strerror or error}; "
            "'off' does not remove it, rm does)"
        )

    def _text(self) -> bytes | None:
        """Return the whole file. Raise OSError for a file whose text cannot be known and kept."""
        text = self._beginning(LARGEST_FILE_BYTES + 1)
        if text is not None and len(text) > LARGEST_FILE_BYTES:
            raise OSError(errno.EFBIG, f"is larger than {LARGEST_FILE_BYTES} bytes")
        return text

    def _reason(self) -> str:
        """Return the beginning of the file's text, on one line."""
        try:
            text = self._beginning(LONGEST_REASON) or b""
        except OSError:
            return ""
        lines = text.decode(errors="replace").splitlines()
        return "; ".join(line.strip() for line in lines if line.strip())

    def _beginning(self, size: int) -> bytes | None:
        """Return the first *size* bytes of a regular file, None without a file."""
        if not os.path.lexists(self.path):
            return None
        # A pipe in the file's place must not block, and the target of a link is another file: it is
        # neither shown as a reason nor copied.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "is not a regular file")
            return os.read(descriptor, size)
        finally:
            os.close(descriptor)  # an open of a directory as a file would leave it open

    def _replace(self, text: bytes) -> None:
        """Write a new file and rename it over the old one, so that it always exists.

        The new file has the mode of the old one, and its owner where this user may give it away.
        """
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        beside.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(beside, flags, 0o644)
        try:
            with os.fdopen(descriptor, "wb") as file:
                self._keep_rights(descriptor)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            self.confirm()
            beside.replace(self.path)
            sync_directory(self.path.parent)
        finally:
            with suppress(OSError):  # it has the file's name by now, or the change has failed
                beside.unlink()

    def _keep_rights(self, descriptor: int) -> None:
        try:
            before = self.path.lstat()
        except FileNotFoundError:
            return
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _without(text: bytes, requester: str) -> bytes:
    """Return *text* without the lines of *requester*. All other bytes are kept."""
    lines = text.splitlines(keepends=True)
    return b"".join(
        line for line in lines if requester_of(line.decode(errors="replace")) != requester
    )


def _ended(text: bytes) -> bytes:
    return text if text.endswith(b"\n") or not text else text + b"\n"


def requester_of(line: str) -> str:
    """Return the requester of a *line* that this tool wrote, empty for any other line."""
    ours = _OURS.match(line)
    return ours["requester"] if ours else ""
