"""The engine that is installed on this host: its path and its version."""

import shutil
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from temper_core.errors import EngineError

if TYPE_CHECKING:
    from temper_core.engine.binary import EngineBinary

FAILURE_S = 60.0
"""A failure is remembered, because a binary that hangs takes 10 s of the agent's loop, but not
for ever: its cause may lie beside the file, as a missing library or a slow disk."""

Identity = tuple[str | int, ...]


@frozen
class InstalledEngine:
    """The engine's binary and the version that it prints.

    ``assumption`` names the version whose rules are used if this one is unknown.
    """

    path: Path
    version: str
    assumption: str = ""


def find_installed(name: str, clock: Callable[[], float] = time.monotonic) -> InstalledEngine:
    """Find the engine by path or name. Raise TemperError if it is missing or not supported.

    The binary runs only if it changed since the last call: on a slow node running it would
    lengthen every reload. A binary that failed runs again after ``FAILURE_S`` at most.
    """
    from temper_core.engine.capabilities import capabilities_of  # noqa: PLC0415 - only agents need it

    binary = _find(name, clock)
    return InstalledEngine(binary.path, binary.version, capabilities_of(binary.version).assumption)


def _find(name: str, clock: Callable[[], float]) -> "EngineBinary":
    path = shutil.which(name)
    if path is None:
        return _ask(name, ())
    try:
        info = Path(path).stat()
    except OSError as error:  # the file may be replaced at this moment
        raise EngineError(f"engine {path}: {error.strerror}") from error
    identity = (path, info.st_ino, info.st_size, info.st_mtime_ns)
    if reason := _failure(name, identity, clock() // FAILURE_S):
        raise EngineError(reason)
    return _ask(name, identity)


@lru_cache(maxsize=4)
def _failure(name: str, identity: Identity, _period: float) -> str:
    """Return why the binary cannot be used, or an empty text."""
    try:
        _ask(name, identity)
    except EngineError as error:
        return str(error)
    return ""


@lru_cache(maxsize=4)
def _ask(name: str, _identity: Identity) -> "EngineBinary":
    from temper_core.engine.binary import find_engine  # noqa: PLC0415 - only agents need it

    return find_engine(name)
