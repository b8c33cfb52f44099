"""Read the settings file, and tell for every setting where its value came from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from temper_core import documents
from temper_core.settings.models import Settings

DEFAULT_PATH = Path("/etc/temper/agent.toml")


@frozen
class Origin:
    """One effective setting: its dotted path, value, and the file or 'default'."""

    path: str
    value: Any
    source: str


@frozen
class Effective:
    """The settings in force and what was given for them."""

    settings: Settings
    source: str
    given: Mapping[str, Any]

    def origins(self) -> Iterator[Origin]:
        """Yield every setting with its value and source, in the order of the models."""
        yield from _origins(self.settings, self.given, self.source, prefix="")


def load(path: Path | None) -> Effective:
    """Read the settings at *path*; without one, the default file if there is any.

    Raises DocumentError, with every misfit, where a file that was named is missing or wrong.
    """
    chosen = path
    if chosen is None and _is_there(DEFAULT_PATH):
        chosen = DEFAULT_PATH
    if chosen is None:
        return Effective(Settings(), "default", {})
    table = documents.read_table(chosen)
    settings = documents.fit(table, Settings, source=str(chosen))
    return Effective(settings, str(chosen), table)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # its directory is closed to this user, as reading it will say
        return True


def _origins(
    model: Any,  # noqa: ANN401 - any settings class
    given: Mapping[str, Any],
    source: str,
    prefix: str,
) -> Iterator[Origin]:
    for field in attrs.fields(type(model)):
        value = getattr(model, field.name)
        path = f"{prefix}{field.name}"
        if attrs.has(type(value)):
            yield from _origins(value, given.get(field.name, {}), source, f"{path}.")
        else:
            yield Origin(path, value, source if field.name in given else "default")
