"""Converts the recordings of earlier versions of Temper to the current format."""

from typing import Any

from temper_core.records.wakes import SECTION, SECTION_VERSION


def settings_of_today(settings: object) -> None:
    """Drop ``[observe] edges`` from recorded *settings*, since a plugin has taken it over."""
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
