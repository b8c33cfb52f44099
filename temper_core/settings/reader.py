"""Read the settings file, and record the source of every value."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.models import Settings
from temper_core.settings.tiers import Tiers

DEFAULT_PATH = Path("/etc/temper/agent.toml")
LARGEST_SETTINGS_BYTES = 4 * 1024 * 1024
"""Bytes. Parsing a megabyte of TOML takes seconds. A file that sets everything has 10 KiB."""
MOVED: Mapping[tuple[str, str], str] = {("observe", "edges"): "plugins.tracer"}
"""Settings of the core that became a plugin's: section and key, and the table they are in."""


@frozen
class Origin:
    """One effective setting: its dotted path, value, the file or 'default', and its declaration."""

    path: str
    value: Any
    source: str
    default: Any = None
    meaning: str = ""


@frozen
class Effective:
    """The settings in force, and the table that was read."""

    settings: Settings
    source: str
    given: Mapping[str, Any]

    def origins(self) -> Iterator[Origin]:
        """Yield every setting of the core, in the order of the models."""
        settings, given = self.settings, self.given
        for origin in origins_of(settings, Settings(), given, self.source, prefix=""):
            if origin.path != "plugins":  # their tables are declared by the plugins
                yield origin


def load(path: Path | None) -> Effective:
    """Read the settings at *path*. Without a path, read the default file if it exists.

    Raises DocumentError, with every misfit, if the file is missing or invalid.
    """
    settings_path = path
    if settings_path is None and _is_there(DEFAULT_PATH):
        settings_path = DEFAULT_PATH
    if settings_path is None:
        return Effective(Settings(), "default", {})
    table = documents.read_table(settings_path, largest_bytes=LARGEST_SETTINGS_BYTES)
    _refuse_moved(table, str(settings_path))
    settings = _placed(documents.fit(table, Settings, source=str(settings_path)), table)
    _refuse_ineffective(table.get("tiers", {}), settings.tiers, str(settings_path))
    return Effective(settings, str(settings_path), table)


def _refuse_moved(table: Mapping[str, Any], source: str) -> None:
    """Raise DocumentError for settings that are a plugin's, with the place where they are now."""
    problems = [
        f"{section}.{key}: is now [{place}] {key}"
        for (section, key), place in MOVED.items()
        if isinstance(table.get(section), dict) and key in table[section]
    ]
    if problems:
        raise DocumentError(source, problems)


def _refuse_ineffective(given: Mapping[str, Any], tiers: Tiers, source: str) -> None:
    """Raise DocumentError for properties of a layer that are given for a tier without one."""
    problems = [
        f"tiers.{tier}.{key}: has no effect while the kind is Open, because such tiers share one "
        "layer; its slice is [plan] open_slice_us, its weight [tiers.low] weight"
        for tier in Tier
        if tiers.of(tier).kind is LayerKind.OPEN
        for key in given.get(tier.value, {})
        if key != "kind" and (tier, key) != (Tier.LOW, "weight")
    ]
    if problems:
        raise DocumentError(source, problems)


def _placed(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """Return *settings* with paths that were not given moved below the directories in force."""
    run, state = Path(settings.run_directory), Path(settings.state_directory)
    server, safe_mode = settings.server, settings.safe_mode
    given_server, given_safe_mode = given.get("server", {}), given.get("safe_mode", {})
    if "socket" not in given_server:
        server = attrs.evolve(server, socket=str(run / "agent.sock"))
    if "file" not in given_safe_mode:
        safe_mode = attrs.evolve(safe_mode, file=str(state / "safe-mode"))
    if "state" not in given_safe_mode:
        safe_mode = attrs.evolve(safe_mode, state=str(state / "safe-mode-requests.json"))
    return attrs.evolve(settings, server=server, safe_mode=safe_mode)


def _is_there(path: Path) -> bool:
    try:
        path.stat()  # Path.exists hides a refusal from Python 3.14 on
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # no access to its directory: reading the file raises the error
        return True
    return True


def origins_of(
    model: Any,  # noqa: ANN401 - any settings class
    default: Any,  # noqa: ANN401 - the same
    given: Mapping[str, Any],
    source: str,
    prefix: str,
) -> Iterator[Origin]:
    """Yield every setting of *model*, of which the file *source* has *given* some."""
    for field in attrs.fields(type(model)):
        value, usual = getattr(model, field.name), getattr(default, field.name, None)
        path = f"{prefix}{field.name}"
        if attrs.has(type(value)):
            below = given.get(field.name, {})
            yield from origins_of(value, usual, below, source, f"{path}.")
        else:
            origin = source if field.name in given else "default"
            yield Origin(path, value, origin, usual, field.metadata.get("help", ""))
