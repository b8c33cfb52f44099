"""Read TOML and JSON documents into frozen models. Errors name every misfit by its path.

Of a document with very many misfits the first ones are named.
"""

import datetime as dt
import errno
import json
import math
import os
import re
import stat
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, Union, get_args, get_origin

import attrs
import tomli
from cattrs import Converter

from temper_core.bounded_text import shortened
from temper_core.errors import DocumentError, InputError
from temper_core.suggestions import did_you_mean

Model = TypeVar("Model")
Problem = tuple[str, str]

NOUNS: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}
LARGEST_DOCUMENT_BYTES = 64 * 1024 * 1024
DEEPEST_YAML = 500
GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a file of gzip (RFC 1952, 2.3.1)."""
RECORDING_SUFFIX = ".rec.gz"
CHUNK_BYTES = 1024 * 1024
INTEGER_BITS = 64
MOST_PROBLEMS = 100
"""Misfits of a list or a table that are named. A small packed document may have millions."""
LONGEST_MISFIT = 1_000
"""Characters of a path or a reason. They may repeat a key or a value of the document."""
FORM = "form"
"""The key in a field's metadata with what its pattern allows, in words that follow 'must be'."""
BYTE_ORDER_MARK = "\ufeff"


class _Misfit(Exception):  # noqa: N818 - never leaves this module
    """All problems of one value, each with the path below it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(
            (shortened(path, LONGEST_MISFIT), shortened(why, LONGEST_MISFIT))
            for path, why in problems
        )
        super().__init__(self.problems)


def read(path: Path, model: type[Model]) -> Model:
    """Read the TOML document at *path* as a *model*. Raise DocumentError with every misfit."""
    return fit(read_table(path), model, source=str(path))


def read_table(path: Path, *, largest_bytes: int = LARGEST_DOCUMENT_BYTES) -> dict[str, Any]:
    """Parse the TOML document at *path*. Raise DocumentError if it is not TOML."""
    return parse_toml(read_text(path, largest_bytes=largest_bytes), source=str(path))


def read_text(
    path: Path, *, pipes: bool = False, largest_bytes: int = LARGEST_DOCUMENT_BYTES
) -> str:
    """Read the UTF-8 document at *path*. Raise DocumentError if it cannot be read.

    Only regular files are allowed, because reading a pipe may block without end. *pipes* allows
    them for a command that a user waits for.
    """
    content = read_bytes(path, pipes=pipes, largest_bytes=largest_bytes)
    return _decoded(content, str(path))


def read_bytes(
    path: Path, *, pipes: bool = False, largest_bytes: int = LARGEST_DOCUMENT_BYTES
) -> bytes:
    """Read the file at *path*. Raise DocumentError, as ``read_text`` does."""
    # O_NONBLOCK: opening a pipe without a writer must not block, so that it can be refused.
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if pipes else os.O_NONBLOCK)
    try:
        descriptor = os.open(path, flags)
        try:
            _require_readable(os.fstat(descriptor), path, largest_bytes, pipes=pipes)
            # With closefd, open() leaves the descriptor of a directory open.
            with open(descriptor, "rb", closefd=False) as file:
                return _bounded(file, str(path), largest_bytes)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise DocumentError(str(path), [error.strerror or str(error)]) from error
    except ValueError as error:
        raise DocumentError(str(path), ["is no name of a file"]) from error


def _require_readable(
    status: os.stat_result, path: Path, largest_bytes: int, *, pipes: bool
) -> None:
    """Raise DocumentError for another kind of file, and for one whose size is too large."""
    if stat.S_ISDIR(status.st_mode):
        raise DocumentError(str(path), [os.strerror(errno.EISDIR)])
    if not pipes and not stat.S_ISREG(status.st_mode):
        raise DocumentError(str(path), ["is not a regular file"])
    if status.st_size > largest_bytes:
        raise DocumentError(str(path), [f"is larger than {largest_bytes} bytes"])


def read_stream(
    stream: BinaryIO, *, source: str, largest_bytes: int = LARGEST_DOCUMENT_BYTES
) -> str:
    """Read *stream* to its end as UTF-8. Raise DocumentError if it is too large or no text."""
    return _decoded(_bounded(stream, source, largest_bytes), source)


def _bounded(stream: BinaryIO, source: str, largest_bytes: int) -> bytes:
    content = bytearray()
    # The size that a file or a device reports may differ from the bytes that it returns.
    while len(content) <= largest_bytes and (part := stream.read(CHUNK_BYTES)):
        content += part
    if len(content) > largest_bytes:
        raise DocumentError(source, [f"is larger than {largest_bytes} bytes"])
    return bytes(content)


def _decoded(content: bytes, source: str) -> str:
    if content.startswith(GZIP_MAGIC):
        raise DocumentError(source, [f"is compressed (gzip), not text{_reader_of_name(source)}"])
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(source, [f"is not UTF-8 text (byte {error.start})"]) from error


def _reader_of_name(name: str) -> str:
    """Return which command reads a file of that *name*, empty for any other name."""
    is_recording = name.endswith(RECORDING_SUFFIX)
    return "; temper simulate reads the recording of a node" if is_recording else ""


def parse_toml(text: str, *, source: str, misfit: str = "is not TOML") -> dict[str, Any]:
    """Parse TOML. Raise DocumentError with line and column if it is invalid."""
    try:
        table = tomli.loads(text.removeprefix(BYTE_ORDER_MARK))
        _refuse_long_numbers(table)
    except (ValueError, RecursionError) as error:
        raise DocumentError(source, [f"{misfit}: {_parse_failure(error)}"]) from error
    return table


def parse_yaml(text: str, *, source: str, aliases: bool = True) -> list[Any]:
    """Parse each document of *text*. Raise DocumentError if it is neither JSON nor YAML.

    Without *aliases* a text with any is refused. A few of them can stand for millions of values.
    """
    # Imported here, since JSON is more frequent, and the import takes longer than reading it.
    import yaml  # noqa: PLC0415

    # The tags !!int, !!bool and !!timestamp raise these for a value of another type.
    failures = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        problem = _yaml_problem(yaml.parse(text, Loader=loader), yaml, aliases=aliases)
        if not problem:
            return list(yaml.load_all(text, Loader=loader))
    except failures as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DocumentError(source, [f"is neither JSON nor YAML: {reason[:300]}"]) from error
    raise DocumentError(source, [problem])


def _yaml_problem(events: Iterable[Any], yaml: Any, *, aliases: bool) -> str:  # noqa: ANN401 - the module
    """Return why the text is not built, or "".

    libyaml builds nested values by recursion in C. Too deep a document crashes the process.
    """
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST_YAML:
            return f"is nested more than {DEEPEST_YAML} levels deep"
        if not aliases and isinstance(event, yaml.AliasEvent):
            return "has aliases (*), which are not supported here"
    return ""


def parse_json(text: str, *, source: str) -> Any:  # noqa: ANN401 - JSON may hold any value
    """Parse JSON. Raise DocumentError with line and column if it is invalid."""
    try:
        return json.loads(text.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        raise DocumentError(source, [f"is not JSON: {_parse_failure(error)}"]) from error


def _parse_failure(error: Exception) -> str:
    if isinstance(error, tomli.TOMLDecodeError | json.JSONDecodeError):
        return str(error)
    # Python's own message describes its limits, not the document.
    is_deep = isinstance(error, RecursionError)
    return "it is nested too deeply" if is_deep else "a number is too long"


def _refuse_long_numbers(table: object) -> None:
    """Raise ValueError for an integer beyond TOML's 64 bits, which Python could not even print."""
    waiting = [table]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int) and value.bit_length() > INTEGER_BITS:
            raise ValueError(value.bit_length())


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON may hold any value
    """Read the JSON at *path*, ``-`` for standard input. Raise DocumentError if it is invalid."""
    source = str(path)
    if source == "-":
        return parse_json(read_stream(sys.stdin.buffer, source=source), source=source)
    return parse_json(read_text(path, pipes=True), source=source)


def fit(table: object, model: type[Model], *, source: str) -> Model:
    """Fit a parsed *table* to a *model*. Messages name *source*."""
    try:
        return _converter().structure(table, model)
    except _Misfit as misfit:
        problems = [f"{path.lstrip('.') or 'document'}: {why}" for path, why in misfit.problems]
        raise DocumentError(source, sorted(problems)) from misfit


def known_keys(table: Any, model: type[Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return *table* without the keys that *model* lacks, since a later version may add some."""
    if not isinstance(table, Mapping):
        return table
    return {key: value for key, value in table.items() if key in attrs.fields_dict(model)}


@lru_cache(maxsize=1)
def _converter() -> Converter:
    converter = Converter()
    for primitive in NOUNS:
        converter.register_structure_hook(primitive, _exactly)
    converter.register_structure_hook_factory(_is_sequence, lambda kind: _sequence(kind, converter))
    converter.register_structure_hook_factory(_is_mapping, lambda kind: _mapping(kind, converter))
    converter.register_structure_hook_factory(_is_union, lambda kind: _union(kind, converter))
    converter.register_structure_hook_factory(attrs.has, lambda kind: _record(kind, converter))
    return converter


Structure = Callable[[Any, Any], Any]


def _exactly(value: object, kind: type) -> object:
    if issubclass(kind, Enum):  # cattrs hands a StrEnum to the hook of str
        return _member(value, kind)
    if type(value) is int and value.bit_length() > INTEGER_BITS:
        raise _Misfit([("", "is too long a number")])
    # cattrs would call kind(value), and bool("false") is True.
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise _Misfit([("", f"must be {NOUNS[kind]}, not {_written(value)}")])
    if isinstance(value, float) and not math.isfinite(value):
        raise _Misfit([("", f"must be a finite number, not {value!r}")])
    return value


def _written(value: object) -> str:
    """Return *value* as written in the document. A date in TOML has no quotes."""
    return f"{value} without quotes" if isinstance(value, dt.date | dt.time) else repr(value)


def _member(value: object, kind: type[Enum]) -> Enum:
    members = _members(kind)
    if not isinstance(value, str) or value not in members:
        names = ", ".join(map(repr, members))
        meant = did_you_mean(value, members) if isinstance(value, str) else ""
        raise _Misfit([("", f"must be one of {names}, not {value!r}{meant}")])
    return members[value]


@lru_cache
def _members(kind: type[Enum]) -> Mapping[str, Enum]:
    return {member.value: member for member in kind}


def _sequence(kind: Any, converter: Converter) -> Structure:  # noqa: ANN401 - a typing alias
    items = get_args(kind)
    repeats = len(items) == 2 and items[1] is ...  # noqa: PLR2004 - tuple[X, ...]

    def structure(value: object, _: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise _Misfit([("", f"must be a list, not {value!r}")])
        if not repeats and len(value) != len(items):
            raise _Misfit([("", f"must be a list of {len(items)} values, not {value!r}")])
        kinds = repeat(items[0], len(value)) if repeats else items
        pairs = ((f"[{n}]", v, k) for n, (v, k) in enumerate(zip(value, kinds, strict=True)))
        return tuple(_each(pairs, converter).values())

    return structure


def _mapping(kind: Any, converter: Converter) -> Structure:  # noqa: ANN401 - a typing alias
    _, item = get_args(kind)

    def structure(value: object, _: object) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _Misfit([("", f"must be a table, not {value!r}")])
        items = _each(((f".{key}", inner, item) for key, inner in value.items()), converter)
        return {path[1:]: inner for path, inner in items.items()}

    return structure


def _each(pairs: Iterable[tuple[str, Any, Any]], converter: Converter) -> dict[str, Any]:
    """Structure every value, then raise one _Misfit with the first MOST_PROBLEMS problems."""
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for path, value, kind in pairs:
        try:
            values[path] = converter.structure(value, kind)
        except _Misfit as misfit:
            problems += [(path + below, why) for below, why in misfit.problems]
            if len(problems) >= MOST_PROBLEMS:
                break
    if problems:
        raise _Misfit(problems[:MOST_PROBLEMS])
    return values


def _is_sequence(kind: object) -> bool:
    origin: object = get_origin(kind)
    return origin is tuple


def _is_mapping(kind: object) -> bool:
    origin: object = get_origin(kind)
    return origin in (dict, Mapping)


def _is_union(kind: object) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _union(kind: Any, converter: Converter) -> Structure:  # noqa: ANN401 - a typing alias
    members = [member for member in get_args(kind) if member is not type(None)]
    takes_none = len(members) < len(get_args(kind))

    def structure(value: object, _: object) -> Any:  # noqa: ANN401 - any member
        if value is None and takes_none:
            return None
        problems: list[str] = []
        for member in members:
            try:
                return converter.structure(value, member)
            except _Misfit as misfit:
                if len(members) == 1:
                    raise
                problems += [why for _, why in misfit.problems]
        raise _Misfit([("", " or ".join(dict.fromkeys(problems)))])

    return structure


_is_record = lru_cache(maxsize=512)(attrs.has)


def _record(kind: Any, converter: Converter) -> Structure:  # noqa: ANN401 - any attrs class
    fields = {field.name: field for field in attrs.fields(attrs.resolve_types(kind))}

    def structure(value: object, _: object) -> Any:  # noqa: ANN401 - an instance of kind
        if isinstance(value, kind):
            return value
        if not isinstance(value, dict | Mapping):  # the check for dict is five times as fast
            raise _Misfit([("", f"must be a table, not {value!r}")])
        return _build(kind, fields, value, converter)

    return structure


def _build(
    kind: Any,  # noqa: ANN401 - any attrs class
    fields: Mapping[str, "attrs.Attribute[Any]"],
    table: Mapping[str, Any],
    converter: Converter,
) -> Any:  # noqa: ANN401 - an instance of kind
    unknown = islice((key for key in table if key not in fields), MOST_PROBLEMS)
    problems = [("", _unknown(key, fields)) for key in unknown]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        try:
            if name in table:
                values[name] = _value(field, table[name], converter)
            elif field.default is attrs.NOTHING:
                raise _Misfit([("", "is required")])  # noqa: TRY301 - one place collects
        except _Misfit as misfit:
            problems += [(f".{name}{below}", why) for below, why in misfit.problems]
    if problems:
        raise _Misfit(problems)
    try:
        return kind(**values)
    except ValueError as error:
        raise _Misfit([("", str(error.args[0]))]) from error


def _unknown(key: str, fields: Iterable[str]) -> str:
    allowed = sorted(fields)
    if not allowed:
        return f"unknown key {key!r}; no key is allowed"
    suggestion = did_you_mean(str(key), allowed)
    return f"unknown key {key!r}; allowed are {', '.join(allowed)}{suggestion}"


def _follows_others(field: "attrs.Attribute[Any]") -> bool:
    """Whether the default follows from the values of other fields."""
    default: Any = field.default
    return isinstance(default, attrs.Factory) and default.takes_self  # type: ignore[arg-type]


def _value(field: "attrs.Attribute[Any]", raw: object, converter: Converter) -> Any:  # noqa: ANN401
    model: Any = type(field.default)
    if _is_record(model) and isinstance(raw, Mapping):
        # A partial table keeps the enclosing default for its missing keys.
        fields = attrs.fields_dict(model).items()
        kept = [name for name, each in fields if not _follows_others(each)]
        raw = {**{name: getattr(field.default, name) for name in kept}, **raw}
    kind: Any = field.type
    value = converter.structure(raw, kind)
    if field.validator is not None:
        try:
            field.validator(None, field, value)
        except (ValueError, TypeError, InputError) as error:
            raise _Misfit([("", _reason(error, field))]) from error
    return value


def _reason(error: Exception, field: "attrs.Attribute[Any]") -> str:
    """Return the message of a validator. In those of attrs it says what is allowed in words."""
    match error.args:
        case (_, _, re.Pattern(), refused) if FORM in field.metadata:
            return f"must be {field.metadata[FORM]}, not {refused!r}"
        case (_, _, [_, _, *_] as allowed, refused):
            names = [each for each in allowed if isinstance(each, str)]
            meant = did_you_mean(refused, names) if isinstance(refused, str) else ""
            return f"must be one of {', '.join(map(repr, allowed))}, not {refused!r}{meant}"
    return str(error.args[0]).removeprefix(f"{field.name!r} ")
