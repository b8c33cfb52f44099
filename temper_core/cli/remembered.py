"""A cache of small texts from one start to the next, valid until an install or removal.

Importing click and loading every plugin takes four times as long as starting Python, and the help
is the same each time. A text is kept in the user's cache directory under a stamp. The stamp
changes with every install, and with the default settings, which may exclude plugins. A text that
is missing, damaged or outdated is made anew.
"""

import os
import sys

from temper_core import __version__

SETTINGS_PATH = "/etc/temper/agent.toml"
"""The default of ``temper_core.settings``, repeated here because that is slow to import."""


LARGEST_TEXT = 1024 * 1024
"""Characters."""


def recall(name: str) -> str | None:
    """Return the text kept as *name*; None unless it was kept under the present stamp."""
    try:
        with open(_path(name), encoding="utf-8", opener=_without_waiting) as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            stamp, _, text = file.read(LARGEST_TEXT).partition("\n")
    except (OSError, ValueError):
        return None
    return text if stamp == _stamp() and text else None


def remember(name: str, text: str) -> None:
    """Keep *text* as *name*. A failure is ignored: it only makes the next start slower.

    Nothing is kept in the directory of another user, whose links could lead root to any file.
    """
    path, stamp = _path(name), _stamp()
    partial = f"{path}.{os.getpid()}"
    try:
        if not _is_own_place(os.path.dirname(path)):  # noqa: PTH120 - the same
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - the same
        with open(partial, "x", encoding="utf-8", opener=_private) as file:
            file.write(f"{stamp}\n{text}")
        os.replace(partial, path)  # noqa: PTH105 - the same
        _forget_others(os.path.dirname(path), stamp)  # noqa: PTH120 - the same
    except OSError:
        return


def _is_own_place(directory: str) -> bool:
    """Whether no other user may change *directory* or what is above it, as far as they exist.

    In a place such as /tmp another user could put a link there at any moment.
    """
    from pathlib import Path

    from temper_core.foreign_writers import foreign_writer

    return not foreign_writer(Path(directory))


def _private(path: str, flags: int) -> int:
    """Create a file that no other user can read. A link at *path* is not followed."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file. A pipe without a writer does not block."""
    return os.open(path, flags | os.O_NONBLOCK)


def _forget_others(directory: str, stamp: str) -> None:
    """Remove the texts with an outdated stamp."""
    for entry in os.scandir(directory):
        with open(entry.path, "rb", opener=_without_waiting) as file:
            is_current = file.readline(LARGEST_TEXT).rstrip(b"\n") == stamp.encode()
        if not is_current:
            os.unlink(entry.path)  # noqa: PTH108 - the same


def _path(name: str) -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - the same
    return f"{home}/temper-agent/{name}"


def _stamp() -> str:
    """Return a line that changes with an install or the settings: versions, paths and times."""
    places: list[tuple[str, int]] = []
    for path in (*sys.path, SETTINGS_PATH):
        try:
            places.append((path, os.stat(path or ".").st_mtime_ns))  # noqa: PTH116 - the same
        except (OSError, ValueError):
            places.append((path, 0))
    # One line of ASCII, even if a directory name has newlines or undecodable bytes.
    return ascii((sys.executable, sys.version.split()[0], __version__, places))
