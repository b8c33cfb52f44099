"""Drops the source text of the methods that attrs generates."""

import linecache
from typing import Any, cast

_GENERATED = "<attrs generated "


class SourceCache(dict[str, Any]):
    """``linecache``'s cache without the texts that attrs puts there for debuggers.

    For the record classes of an agent they take 1.2 MB. Without them a traceback shows no source
    line for a generated method, and is otherwise the same.
    """

    def setdefault(self, name: str, entry: Any = None) -> Any:  # noqa: ANN401 - as of a dict
        """Keep *entry*, unless it is the source of a generated method."""
        return entry if name.startswith(_GENERATED) else super().setdefault(name, entry)


def forget_generated_sources() -> None:
    """Drop these texts in this process from now on. Call it before records are imported."""
    linecache.cache = cast("dict[str, Any]", SourceCache(linecache.cache))
