"""How the life cycle reaches plans and the installed engine; tests give their own."""

import shutil
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from attrs import field, frozen

from temper_core.errors import EngineError
from temper_core.records.plans import LayerPlan


@frozen
class InstalledEngine:
    """The engine's binary and the version it calls itself.

    ``assumption`` says which version's rules are taken where this one's are not known.
    """

    path: Path
    version: str
    assumption: str = ""


def render_with_the_compiler(plan: LayerPlan) -> str:
    """Render a plan as ``temper plan --output engine`` does."""
    from temper_core.plan import render_engine  # noqa: PLC0415 - the compiler is large

    text: str = render_engine(plan)
    return text


def find_installed(name: str) -> InstalledEngine:
    """Find the engine by path or name, in a version Temper knows; raise TemperError.

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


def check_against_rules(config: str, version: str, cpus: int) -> None:
    """Hold a configuration against the engine's rules; raise PlanError naming what it breaks."""
    from temper_core.engine.capabilities import capabilities_of  # noqa: PLC0415 - large table
    from temper_core.engine.configuration_check import ensure_accepted  # noqa: PLC0415 - same

    ensure_accepted(config, capabilities_of(version), cpus=cpus, source="plan")


@frozen
class EngineAccess:
    """Plan to text, name to binary, text to verdict; and what every start adds."""

    render: Callable[[LayerPlan], str] = render_with_the_compiler
    find: Callable[[str], InstalledEngine] = find_installed
    check: Callable[[str, str, int], None] = check_against_rules
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(factory=dict)
