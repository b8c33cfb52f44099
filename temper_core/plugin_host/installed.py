"""Which plugins are installed: the entry points of every distribution, read one by one."""

from collections.abc import Callable, Iterator
from importlib import metadata

from attrs import frozen

from temper_core.hookspecs import ENTRY_POINTS


@frozen
class Installed:
    """A plugin that a distribution offers; ``load`` imports it, or says why it cannot."""

    name: str
    distribution: str
    version: str
    load: Callable[[], object]


def installed_plugins() -> list[Installed]:
    """Return what is installed, by name, so that the order of installing decides nothing."""
    return sorted(_offers(), key=lambda plugin: (plugin.name, plugin.distribution))


def _offers() -> Iterator[Installed]:
    seen: set[str] = set()
    for distribution in metadata.distributions():
        # Parsing all the others' entry points would cost more, and one broken file fails it all.
        text = distribution.read_text("entry_points.txt") or ""
        if ENTRY_POINTS not in text:
            continue
        name = distribution.metadata["Name"] or "unknown"
        if name.lower() not in seen:  # further down the path it cannot be imported
            seen.add(name.lower())
            yield from _offers_of(distribution, name)


def _offers_of(distribution: metadata.Distribution, name: str) -> Iterator[Installed]:
    version = distribution.metadata["Version"] or ""
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
