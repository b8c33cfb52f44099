"""Exceptions of plugins as plain records, made in the plugin's thread and within its deadline.

An exception may run code of its plugin wherever it is read: ``__str__``, ``__class__``,
``__getattribute__``, a metaclass. Types are therefore compared by the interpreter's own records,
attributes are read by the descriptors of ``BaseException``, and every other access is guarded.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import TracebackType
from typing import Any

import attrs
from attrs import frozen

from temper_core.bounded_text import shortened
from temper_core.errors import (
    BpfError,
    DocumentError,
    EngineError,
    InputError,
    MachineError,
    NameClash,
    PlanError,
    PluginError,
    TemperError,
)
from temper_core.plugin_host.code_places import MOST_FRAMES, Place, authors_place, in_brackets
from temper_core.plugin_host.plain_values import LONGEST_NAME, kind_of, plain_int, plain_text
from temper_core.plugin_host.plugin_threads import AbandonedCall

LONGEST_REASON = 300
"""Characters of a reason. A longer one is truncated."""
LONGEST_TEXT = 10_000
"""Characters of the text of an error that the contract allows, such as a refused document's."""
MOST_PROBLEMS = 100
MOST_CAUSES = 4
MOST_LOOKED_AT = 100
"""Innermost frames among which an author's is looked for."""
UNREADABLE = "its message cannot be read"

_OURS: tuple[type[TemperError], ...] = (
    NameClash,
    PluginError,
    PlanError,
    DocumentError,
    InputError,
    BpfError,
    EngineError,
    MachineError,
    TemperError,
)
"""All errors of the core, each before its base."""


@frozen
class PlainFailure:
    """An error that a plugin raised. It holds no object of the plugin.

    Attributes:
        kind: The name of the exception's type.
        reason: Type and message in one line of at most ``LONGEST_REASON`` characters, and the
            innermost frame that is not of the core or the standard library: ``KeyError: 'x'
            (page.py:4 in collect)``. Errors of Temper have none.
        traceback: The innermost frames of the exception and its causes, a line each.
        error: A copy, if the exception is one of Temper's. Its type is exactly one of the core's.

    """

    kind: str
    reason: str
    traceback: str = ""
    error: TemperError | None = None


def failure_of(error: BaseException) -> PlainFailure:
    """Return *error* as a plain record. Raise AbandonedCall only."""
    kind = _kind_of(error)
    place = _guarded(lambda: _place(error), "")
    return PlainFailure(
        kind,
        f"{shortened(describe(error), LONGEST_REASON - len(place))}{place}",
        _guarded(lambda: "\n".join(_traceback(error)), ""),
        _guarded(lambda: _copied(error), None),
    )


def describe(error: BaseException) -> str:
    """Describe *error* in one printable line of bounded length. Raise AbandonedCall only."""
    line = _one_line(_guarded(lambda: _message(error), UNREADABLE))
    if not issubclass(type(error), TemperError):
        kind = _kind_of(error)
        line = f"{kind}: {line}" if line else kind
    return shortened(line, LONGEST_REASON)


def _guarded(read: Callable[[], Any], otherwise: Any) -> Any:  # noqa: ANN401 - of any type
    try:
        return read()
    except AbandonedCall:
        raise
    except BaseException:  # noqa: BLE001 - the code of an exception may raise anything, an exit too
        return otherwise


def _message(error: BaseException) -> str:
    if issubclass(type(error), PluginError):
        return plain_text(error.reason)  # type: ignore[attr-defined]
    arguments = _read("args", error)
    if len(arguments) > 1 and type(arguments[1]) is attrs.Attribute:
        return plain_text(str(arguments[0]))  # attrs' validators add the attribute and the value
    return plain_text(str(error))


def _one_line(text: str) -> str:
    text = text[: 2 * LONGEST_REASON]  # bounds the cost of a long text
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _kind_of(error: BaseException) -> str:
    return _one_line(kind_of(error)) or "an exception without a name"


def _read(name: str, error: BaseException) -> Any:  # noqa: ANN401 - of any type
    return BaseException.__dict__[name].__get__(error)


def _copied(error: BaseException) -> TemperError | None:
    kind = next((ours for ours in _OURS if issubclass(type(error), ours)), None)
    if kind is None:
        return None
    copy = kind.__new__(kind, plain_text(str(error))[:LONGEST_TEXT])
    if isinstance(copy, DocumentError | PlanError):
        copy.source = plain_text(error.source)[:LONGEST_TEXT]  # type: ignore[attr-defined]
        problems = islice(error.problems, MOST_PROBLEMS)  # type: ignore[attr-defined]
        copy.problems = tuple(plain_text(problem)[:LONGEST_TEXT] for problem in problems)
    elif isinstance(copy, PluginError):
        copy.plugin = plain_text(error.plugin)[:LONGEST_NAME]  # type: ignore[attr-defined]
        copy.reason = describe(error)
    elif isinstance(copy, BpfError):
        copy.errno = plain_int(error.errno)  # type: ignore[attr-defined]
        copy.log = plain_text(error.log)[:LONGEST_TEXT]  # type: ignore[attr-defined]
    return copy


def _traceback(error: BaseException) -> Iterator[str]:
    """Yield the frames of *error* and of its causes, outermost first, without reading a file."""
    cause: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if cause is None:
            return
        yield from _frames(_read("__traceback__", cause))
        yield describe(cause)
        next_cause = _read("__cause__", cause)
        if next_cause is None and not _read("__suppress_context__", cause):
            next_cause = _read("__context__", cause)
        cause = next_cause
        if cause is not None:
            yield "caused by:"


def _place(error: BaseException) -> str:
    """Return where *error* was raised, for an author with one line of log. Empty if unknown."""
    if issubclass(type(error), TemperError):
        return ""
    innermost_first = _places(_read("__traceback__", error))[::-1]
    if place := authors_place(innermost_first):
        return in_brackets(place)
    innermost = next(iter(innermost_first), None)
    return in_brackets(innermost) if innermost and not innermost.is_generated else ""


def is_in_authors_code(error: BaseException) -> bool:
    """Whether code that is not of the core, or of the standard library, was active in *error*."""
    return authors_place(_places(_read("__traceback__", error))) is not None


def _frames(entry: TracebackType | None) -> Iterator[str]:
    yield from lines_of(_places(entry)[-MOST_FRAMES:])


def lines_of(places: Iterable[Place]) -> Iterator[str]:
    """Yield the lines of a traceback."""
    for place in places:
        yield _one_line(f"  {place.file}:{place.line} in {place.function}")


def _places(entry: TracebackType | None) -> tuple[Place, ...]:
    """Return the places of the innermost frames, outermost first."""
    last: deque[Place] = deque(maxlen=MOST_LOOKED_AT)
    while entry is not None:
        last.append(Place.of(entry.tb_frame.f_code, entry.tb_lineno))
        entry = entry.tb_next
    return tuple(last)
