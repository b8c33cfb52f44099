"""The engine that is installed on this host: its path and its version."""

import shutil
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from temper_core.errors import EngineError


@frozen
class InstalledEngine:
    """The engine's binary and the version it calls itself.

    ``assumption`` says which version's rules are taken where this one's are not known.
    """

    path: Path
    version: str
    assumption: str = ""


def find_installed(name: str) -> InstalledEngine:
    """Find the engine by path or name, in a version Temper knows. Raise TemperError.

    The binary is run only where it is not the one that answered last time: on a slow node that
    would lengthen every reload.
    """
    path = shutil.which(name)
    if path is None:
        return _ask(name, ())
    try:
        found = Path(path).stat()
    except OSError as error:  # it may be being replaced at this moment
        raise EngineError(f"engine {path}: {error.strerror}") from error
    return _ask(name, (path, found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=4)
def _ask(name: str, _identity: tuple[str | int, ...]) -> InstalledEngine:
    from temper_core.engine.binary import find_engine  # noqa: PLC0415 - only agents need it
    from temper_core.engine.capabilities import capabilities_of  # noqa: PLC0415 - same

    found = find_engine(name)
    return InstalledEngine(found.path, found.version, capabilities_of(found.version).assumption)
