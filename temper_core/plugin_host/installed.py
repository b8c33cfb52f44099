"""Find installed plugins by the entry points of every distribution, read one by one."""

from collections.abc import Callable, Iterator
from importlib import metadata

from attrs import frozen

from temper_core.hookspecs import ENTRY_POINTS


@frozen
class Installed:
    """A plugin that a distribution offers. ``load`` imports it, or raises ValueError."""

    name: str
    distribution: str
    version: str
    load: Callable[[], object]


def installed_plugins() -> list[Installed]:
    """Return the installed plugins by name, so that the install order does not matter."""
    return sorted(_offers(), key=lambda plugin: (plugin.name, plugin.distribution))


def _offers() -> Iterator[Installed]:
    names: set[str] = set()
    for distribution in metadata.distributions():
        # ``metadata.entry_points()`` parses every distribution, and one broken file fails them all.
        unreadable = ""
        try:
            text = distribution.read_text("entry_points.txt") or ""
        except Exception as error:  # noqa: BLE001 - installers may write any content
            text, unreadable = ENTRY_POINTS, f"entry_points.txt cannot be read: {error}"
        if ENTRY_POINTS not in text:
            continue
        name, version = _name_and_version(distribution)
        if name.lower() not in names:  # further down the path it cannot be imported
            names.add(name.lower())
            if unreadable:
                yield Installed(name, name, version, _refusal(unreadable))
            else:
                yield from _offers_of(distribution, name, version)


def _name_and_version(distribution: metadata.Distribution) -> tuple[str, str]:
    try:
        return distribution.metadata["Name"] or "unknown", distribution.metadata["Version"] or ""
    except Exception:  # noqa: BLE001 - as above
        return "unknown", ""


def _offers_of(distribution: metadata.Distribution, name: str, version: str) -> Iterator[Installed]:
    try:
        entry_points = list(distribution.entry_points)
    except Exception as error:  # noqa: BLE001 - the parser of the standard library is not strict
        reason = f"entry_points.txt cannot be read: {error}"
        yield Installed(name, name, version, _refusal(reason))
        return
    for entry_point in entry_points:
        if entry_point.group == ENTRY_POINTS:
            yield Installed(entry_point.name, name, version, entry_point.load)


def _refusal(reason: str) -> Callable[[], object]:
    def load() -> object:
        raise ValueError(reason)

    return load
