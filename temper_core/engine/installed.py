"""The engine that is installed on this host: its path and its version."""

import shutil
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from temper_core.errors import EngineError


@frozen
class InstalledEngine:
    """The engine's binary and the version that it prints.

    ``assumption`` names the version whose rules are used if this one is unknown.
    """

    path: Path
    version: str
    assumption: str = ""


def find_installed(name: str) -> InstalledEngine:
    """Find the engine by path or name. Raise TemperError if it is missing or not supported.

    The binary runs only if it changed since the last call: on a slow node running it would
    lengthen every reload.
    """
    path = shutil.which(name)
    if path is None:
        return _ask(name, ())
    try:
        info = Path(path).stat()
    except OSError as error:  # the file may be replaced at this moment
        raise EngineError(f"engine {path}: {error.strerror}") from error
    return _ask(name, (path, info.st_ino, info.st_size, info.st_mtime_ns))


@lru_cache(maxsize=4)
def _ask(name: str, _identity: tuple[str | int, ...]) -> InstalledEngine:
    from temper_core.engine.binary import find_engine  # noqa: PLC0415 - only agents need it
    from temper_core.engine.capabilities import capabilities_of  # noqa: PLC0415 - same

    binary = find_engine(name)
    return InstalledEngine(binary.path, binary.version, capabilities_of(binary.version).assumption)
