"""Files without a name: the kernel removes them with the process that has them open."""

import errno
import os
from pathlib import Path
from typing import Self

from attrs import define

PARTIAL = ".partial"
"""The suffix of a file that is not whole, on file systems without O_TMPFILE."""
MODE = 0o600
_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL})


@define(eq=False)
class UnlinkedFile:
    """A file of *directory* that has no name until ``publish``.

    If the file system has no O_TMPFILE, it has a name that ends in ``PARTIAL``.
    """

    descriptor: int
    _directory: Path
    _partial: Path | None = None

    @classmethod
    def create(cls, directory: Path) -> "UnlinkedFile":
        """Make the file. Raises OSError."""
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            return cls(os.open(directory, flags | os.O_TMPFILE, MODE), directory)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        partial = directory / f"{os.urandom(8).hex()}{PARTIAL}"
        return cls(
            os.open(partial, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, MODE),
            directory,
            partial,
        )

    def reserve(self, size: int) -> None:
        """Take *size* bytes of the file system for later writing. Raises OSError."""
        os.posix_fallocate(self.descriptor, 0, size)

    def forget_name(self) -> None:
        """Remove a name that it has because there is no O_TMPFILE. It is never published then."""
        if self._partial is not None:
            self._partial.unlink(missing_ok=True)
            self._partial = None

    def publish(self, name: str) -> Path:
        """Give the whole file its name in the directory. Raises OSError, also if that exists."""
        os.fsync(self.descriptor)
        path = self._directory / name
        if self._partial is not None:
            os.link(self._partial, path)
            self.forget_name()
            return path
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:  # only with a dst_dir_fd does Python call linkat(2), which follows this link
            os.link(f"/proc/self/fd/{self.descriptor}", name, dst_dir_fd=directory)
        finally:
            os.close(directory)
        return path

    def close(self) -> None:
        """Close it. A file without a name is gone then."""
        self.forget_name()
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
