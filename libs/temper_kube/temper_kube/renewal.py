"""Kubeconfigs that are replaced in place: a renewed token or certificate is read from them."""

import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from temper_core import InputError, MachineError
from temper_kube.access import Access

Versions = tuple[tuple[int, int, int], ...]

SETTLED_S = 2.0
"""How long a file must not have changed: the first half of a kubeconfig may be one, too."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Renewal:
    """The *access* of files, read again once one of them has changed. For any thread.

    *versions* are those of the files that *access* was read from. Files that cannot be read or
    used, or have changed just now, keep the former access, and are tried again.
    """

    def __init__(
        self, access: Access, files: Sequence[Path], versions: Versions, read: Callable[[], Access]
    ) -> None:
        self._access = access
        self._files = files
        self._versions = versions
        self._read = read
        self._problem = ""
        self._seen, self._seen_at = versions, time.monotonic()
        self._lock = threading.Lock()

    def now(self) -> Access:
        """Return the access as of now. The files are read only if they have changed."""
        with self._lock:
            versions = versions_of(self._files)
            if versions != self._versions and self._has_settled(versions):
                self._renew(versions)
            return self._access

    def _has_settled(self, versions: Versions) -> bool:
        """Return whether nothing has changed for ``SETTLED_S``, by the files' times or by looks."""
        now = time.monotonic()
        if versions != self._seen:
            self._seen, self._seen_at = versions, now
        latest_ns = time.time_ns() - int(SETTLED_S * 1e9)
        is_old = all(changed_ns <= latest_ns for _, _, changed_ns in versions)
        return is_old or now - self._seen_at >= SETTLED_S

    def _renew(self, versions: Versions) -> None:
        try:
            self._access, self._versions = self._read(), versions
        except (InputError, MachineError) as error:
            if str(error) != self._problem:
                log.warning("kubeconfig_not_renewed", problem=str(error))
            self._problem = str(error)
        else:
            self._problem = ""


def versions_of(files: Sequence[Path]) -> Versions:
    """Return what changes with the contents of *files*. Empty if one is missing or a pipe."""
    try:
        states = [file.stat() for file in files]
    except OSError:
        return ()
    if not all(stat.S_ISREG(state.st_mode) for state in states):
        return ()
    return tuple((state.st_ino, state.st_size, state.st_mtime_ns) for state in states)
