"""Small texts remembered from one start to the next, until something is installed or removed.

Importing click and asking every plugin costs four times what Python itself needs to start; the
help says the same each time. A text is kept in the user's cache directory under a stamp that
changes with every install, and is only a copy: whatever is wrong with it, it is made anew.
"""

import os
import sys

from temper_core import __version__

SUFFIX = "-packages"


def recall(name: str) -> str | None:
    """Return the text kept as *name*; None unless it was kept under today's stamp."""
    try:
        with open(_path(name), encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to import
            stamp, _, text = file.read().partition("\n")
    except (OSError, ValueError):
        return None
    return text if stamp == _stamp() and text else None


def remember(name: str, text: str) -> None:
    """Keep *text* as *name*; where that cannot be done, the next start is slower and no more."""
    path = _path(name)
    partial = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - the same
        with open(partial, "w", encoding="utf-8") as file:  # noqa: PTH123 - the same
            file.write(f"{_stamp()}\n{text}")
        os.replace(partial, path)  # noqa: PTH105 - the same
    except OSError:
        return


def _path(name: str) -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - the same
    return f"{home}/temper-agent/{name}"


def _stamp() -> str:
    """Return what changes with every install: Python, Temper, the directories' times."""
    sites = [
        f"{path}={os.stat(path).st_mtime_ns}"  # noqa: PTH116 - the same
        for path in sys.path
        if path.endswith(SUFFIX) and os.path.isdir(path)  # noqa: PTH112 - the same
    ]
    return " ".join([sys.executable, sys.version.split()[0], __version__, *sites])
