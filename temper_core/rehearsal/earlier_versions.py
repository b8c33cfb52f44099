"""Converts the recordings of earlier versions of Temper to the current format."""

from contextlib import suppress
from typing import Any

from temper_core.records.wakes import SECTION, SECTION_VERSION

OWN_FILES = (("safe_mode", "file"), ("safe_mode", "state"), ("server", "socket"))


def settings_of_today(settings: object) -> None:
    """Make recorded *settings* those of today.

    ``[observe] edges`` is dropped, since a plugin has taken it over. ``[lint] fire_after`` becomes
    at most ``windows``, as it was applied. Relative paths of the agent's own files are dropped.
    """
    for section, key in OWN_FILES:
        table = settings.get(section) if isinstance(settings, dict) else None
        if not isinstance(table, dict):
            continue
        path = table.get(key)
        if isinstance(path, str) and path and not path.startswith("/"):
            del table[key]
    lint = settings.get("lint") if isinstance(settings, dict) else None
    if isinstance(lint, dict):
        with suppress(KeyError, TypeError):
            lint["fire_after"] = min(lint["fire_after"], lint["windows"])
    observe = settings.get("observe") if isinstance(settings, dict) else None
    if isinstance(observe, dict):
        observe.pop("edges", None)


def look_of_today(look: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded *look* with its window of wake-ups as a section."""
    if "wakes" not in look:
        return look
    rest = {key: value for key, value in look.items() if key != "wakes"}
    window, sections = look["wakes"], look.get("sections", {})
    if window is None or not isinstance(sections, dict):
        return rest
    section = {"schema_version": SECTION_VERSION, "content": window}
    return {**rest, "sections": {SECTION: section, **sections}}
