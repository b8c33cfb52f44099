"""What earlier versions of temper have recorded, as this one reads it."""

from typing import Any

from temper_core.records.wakes import SECTION, SECTION_VERSION


def settings_of_today(settings: object) -> None:
    """Drop from recorded *settings* what plugins have taken over: ``[observe] edges``."""
    observe = settings.get("observe") if isinstance(settings, dict) else None
    if isinstance(observe, dict):
        observe.pop("edges", None)


def look_of_today(look: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded *look* whose window of wake-ups is a section."""
    if "wakes" not in look:
        return look
    rest = {key: value for key, value in look.items() if key != "wakes"}
    window, sections = look["wakes"], look.get("sections", {})
    if window is None or not isinstance(sections, dict):
        return rest
    section = {"schema_version": SECTION_VERSION, "content": window}
    return {**rest, "sections": {SECTION: section, **sections}}
