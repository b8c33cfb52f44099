"""Generates the reference of the records of plugins. Cog writes it into ``records.md``."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, get_args

import attrs

import temper_core
from temper_core.records.names import NameFormat

SECTIONS = {
    "What is observed": ("snapshots", "wakes", "histogram"),
    "What a linter finds": ("invariants", "lint"),
    "Pods, threads and machines": ("pods", "threads", "tiers", "machine", "executions"),
    "Plans and profiles": (
        "plans",
        "layers",
        "steering",
        "profiles",
        "thread_groups",
        "traits",
        "evidence",
        "matchers",
    ),
    "What hooks contribute": ("contributions", "declarations"),
    "Endpoints": ("endpoints",),
    "Instruments": ("instruments", "trials", "checks", "events", "restored"),
}
"""The modules of ``temper_core.records`` by the heading of their records."""
ELSEWHERE = "Others"
RATIO = "ratio, 1.0 is 100 %"
UNITS = {
    "_per_s": "per second",
    "_s": "seconds",
    "_us": "microseconds",
    "_bytes": "bytes",
    "_millis": "millicores",
    "_cores": "cores",
    "_mhz": "MHz",
    "_ratio": RATIO,
    "_ticks": "clock ticks",
}
"""Units by the end of a field's name. Other units are in the words of the record."""
COUNT = "count"
NUMBERS = {
    **dict.fromkeys(("cpus_used", "cpu_used", "short_lived_cpu_used", "run_delay"), "CPUs"),
    **dict.fromkeys(("cpus", "cpuset", "affinity", "offline", "isolated"), "ids of CPUs"),
    **dict.fromkeys(("avg10", "avg60", "avg300"), RATIO),
    **dict.fromkeys(("at", "since"), "wall-clock seconds since 1970-01-01 UTC"),
    **dict.fromkeys(("runs", "voluntary", "involuntary", "migrations", "switches"), "count or -1"),
    **dict.fromkeys(("waits", "wakes", "lost", "tasks", "helpers", "calls", "unlisted"), COUNT),
    **dict.fromkeys(("threads", "threads_seen", "niced", "own_nice", "astray"), "threads"),
    **dict.fromkeys(("steered", "corrected", "kicked", "failures", "by_hook"), COUNT),
    **dict.fromkeys(("descriptors", "series", "counts", "pressure_events"), COUNT),
    "walk_ns": "nanoseconds",
    "tid": "id of the thread",
    "tgid": "id of the process",
    "uid": "id of the user",
    "cpu": "id of the CPU",
    "core": "number of the core",
    "socket": "number of the socket",
    "node": "number of the NUMA node",
    "llc": "number of the last-level cache",
    "id": "id of the CPU",
    "capacity": "1 to 1024",
    "nice": "nice value, -20 to 19",
    "rt_priority": "priority of sched(7), 0 to 99",
    "weight": "weight of the engine, 100 is usual",
    "PodSample.weight": "`cpu.weight`, 1 to 10000",
    "Matcher.value": "what the kind compares with",
    "MetricSample.value": "unit of the family",
    "stock": "in `unit`",
    "priority": "priority of the pod's class",
    "evidence": "numbers of the finding by name",
    **dict.fromkeys(("cpus_min", "cpus_max"), "count of CPUs"),
    **dict.fromkeys(("cores", "threads_per_core", "sockets", "numa_nodes", "llcs"), COUNT),
    **dict.fromkeys(("unthrottled_pressure", "profile_coverage"), RATIO),
    **dict.fromkeys(("util", "util_range", "cpu_fraction"), RATIO),
    "cpu_share": "CPUs",
    "hints": "number of the hint by layer",
    "confidence": "0.0 to 1.0",
    "generation": "number of the plan since the agent's start",
    "schema_version": "version",
    "status": "status of HTTP",
    **dict.fromkeys(("bounds", "total"), "unit of the values"),
    **dict.fromkeys(("tiers_only", "profile", "spread"), "in `unit`"),
}
"""Units of numbers by the name of a field. That of one record is ``Record.field``."""
RECORDS = "temper_core.records."
_ATTRIBUTES = re.compile(r"^Attributes:\n((?:(?: {4}.*)?\n?)*)", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^(\w+): ", re.MULTILINE)
_MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")


def records_reference() -> str:
    """Render every record of ``temper_core.__all__``, and those that their fields hold."""
    known = sorted(records(), key=lambda record: record.__name__)
    titles = [*SECTIONS, ELSEWHERE]
    sections = {
        title: [record for record in known if title_of(record) == title] for title in titles
    }
    parts = [
        f"## {title}\n\n{''.join(map(_rendered, found))}"
        for title, found in sections.items()
        if found
    ]
    return "\n".join(parts).rstrip()


def records() -> set[type]:
    """Return the public records, enumerations and protocols, and the records in their fields."""
    found: set[type] = set()
    named = [getattr(temper_core, name) for name in temper_core.__all__]
    waiting = [each for each in named if isinstance(each, type) and _is_record(each)]
    while waiting:
        record = waiting.pop()
        if record not in found:
            found.add(record)
            waiting += _within(record)
    return found


def title_of(record: type) -> str:
    """Return the heading under which *record* is."""
    module = record.__module__.removeprefix(RECORDS)
    return next((title for title, modules in SECTIONS.items() if module in modules), ELSEWHERE)


def _is_record(candidate: type) -> bool:
    is_ours = candidate.__module__.startswith(RECORDS)
    is_protocol = bool(getattr(candidate, "_is_protocol", False))
    return is_ours and (attrs.has(candidate) or issubclass(candidate, Enum) or is_protocol)


def _within(record: type) -> Iterator[type]:
    """Yield the records that the fields of *record* hold, below containers and alternatives too."""
    waiting: list[Any] = [field.type for field in _fields(record)]
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        if isinstance(kind, type) and _is_record(kind):
            yield kind


def _fields(record: type) -> "tuple[attrs.Attribute[Any], ...]":
    return attrs.fields(record) if attrs.has(record) else ()


def _rendered(record: type) -> str:
    words, attributes = _words(record)
    if issubclass(record, Enum):
        table = _table(
            ("value", "name"), ((f"`{each.value}`", f"`{each.name}`") for each in record)
        )
    elif attrs.has(record):
        rows = [_row(record, field, attributes) for field in _fields(record)]
        table = _table(("field", "type", "default", "unit or meaning"), rows)
    else:
        table = ""
    members = _table(("member", "meaning"), _members(record))
    return "\n".join(filter(None, (f"### `{record.__name__}`\n", words, table, members))) + "\n"


def _row(
    record: type, field: "attrs.Attribute[Any]", attributes: dict[str, str]
) -> tuple[str, ...]:
    ending = next((unit for end, unit in UNITS.items() if field.name.endswith(end)), "")
    named = NUMBERS.get(f"{record.__name__}.{field.name}", NUMBERS.get(field.name, ""))
    unit = (named if holds_numbers(field.type) else "") or ending
    words = field.validator.words if isinstance(field.validator, NameFormat) else ""
    meaning = attributes.get(field.name, "") or words
    return f"`{field.name}`", f"`{_type_text(field.type)}`", _default(field), meaning or unit


def holds_numbers(kind: object) -> bool:
    """Whether a field of the type *kind* has a number, or several."""
    return kind in (int, float) or any(map(holds_numbers, get_args(kind)))


def _type_text(kind: object) -> str:
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return _MODULE.sub("", text).replace("'", "").replace("|", "\\|")


def _default(field: "attrs.Attribute[Any]") -> str:
    default = field.default
    if default is attrs.NOTHING:
        return "required"
    if hasattr(default, "factory"):
        return "empty"
    if attrs.has(type(default)):
        return f"`{type(default).__name__}()`"
    shown = str(default) if isinstance(default, Enum) else repr(default)
    return f"`{shown}`".replace("|", "\\|")


def _words(record: type) -> tuple[str, dict[str, str]]:
    """Return the docstring of *record* as Markdown, and the words on its fields."""
    text = f"{inspect.getdoc(record) or ''}\n"
    found = _ATTRIBUTES.search(text)
    listed = found[1] if found else ""
    words = text.replace(found[0], "") if found else text
    return f"{_markdown(words)}\n", _by_name(inspect.cleandoc(f"\n{listed}"))


def _by_name(listed: str) -> dict[str, str]:
    parts = _ATTRIBUTE.split(listed)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {name: " ".join(_markdown(text).split()) for name, text in pairs}


def _markdown(text: str) -> str:
    return text.strip().replace("``", "`")


def _members(record: type) -> Iterator[tuple[str, str]]:
    """Yield the public methods and properties of *record* with the first line of their words."""
    for name, member in vars(record).items():
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
            continue
        call = "" if isinstance(member, property) else _signature(function)
        yield f"`{name}{call}`", _markdown(inspect.cleandoc(function.__doc__).split("\n\n")[0])


def _signature(function: Callable[..., object]) -> str:
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return f"({', '.join(names)})"


def _table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table of Markdown, empty without rows."""
    lines = [f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in rows]
    named = list(heads)
    head = [f"| {' | '.join(named)} |", f"|{' --- |' * len(named)}"]
    return "\n".join([*head, *lines]) + "\n" if lines else ""
