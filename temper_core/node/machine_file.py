"""Machine files: the shape of another machine, as input for a plan.

``temper machine --output json`` prints a full file. A short file has only counts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
from attrs import field, frozen
from attrs.validators import and_, ge, in_, le, matches_re, max_len, min_len, optional

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.node.cpulist import CPU_LIMIT
from temper_core.records.machine import Cpu, MachineShape

SCHEMA_VERSION = 1
MOST_CPUS = 4096
LONGEST_SHOWN = 60

_COUNT = optional(and_(ge(1), le(MOST_CPUS)))
_DERIVED = ("cores", "threads_per_core", "sockets", "numa_nodes", "llcs", "siblings")


@frozen
class MachineDocument:
    """A machine file, full (with ``cpus``) or short (with ``cores``)."""

    schema_version: int = field(default=SCHEMA_VERSION, validator=in_([SCHEMA_VERSION]))
    architecture: str = field(default="x86_64", validator=matches_re(r"[a-z0-9_]{1,32}"))
    cores: int | None = field(default=None, validator=_COUNT)
    threads_per_core: int | None = field(default=None, validator=_COUNT)
    sockets: int | None = field(default=None, validator=_COUNT)
    numa_nodes: int | None = field(default=None, validator=_COUNT)
    llcs: int | None = field(default=None, validator=_COUNT)
    siblings: tuple[tuple[int, ...], ...] | None = None
    offline: tuple[int, ...] = ()
    isolated: tuple[int, ...] = ()
    cpus: tuple[Cpu, ...] | None = field(
        default=None, validator=optional(and_(min_len(1), max_len(MOST_CPUS)))
    )


def machine_document(machine: MachineShape) -> dict[str, Any]:
    """Return *machine* as a full machine file, ready for JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "architecture": machine.architecture,
        **{name: getattr(machine, name) for name in _DERIVED},
        "siblings": [list(siblings) for siblings in machine.siblings],
        "offline": list(machine.offline),
        "isolated": list(machine.isolated),
        "cpus": [attrs.asdict(cpu) for cpu in machine.cpus],
    }


def read_machine_file(path: Path) -> MachineShape:
    """Read a machine file, JSON or TOML. Raise DocumentError with every problem."""
    text = documents.read_text(path)
    table = _parsed(text, source=str(path))
    document = documents.fit(table, MachineDocument, source=str(path))
    machine, problems = _full(document) if document.cpus else _short(document)
    if machine is None or problems:
        raise DocumentError(str(path), problems)
    return machine


def _parsed(text: str, *, source: str) -> object:
    if text.removeprefix(documents.BYTE_ORDER_MARK).lstrip()[:1] in (
        "{",
        "[",
    ) and not source.endswith(".toml"):
        return documents.parse_json(text, source=source)
    return documents.parse_toml(text, source=source, misfit="is neither JSON nor TOML")


def _short(document: MachineDocument) -> tuple[MachineShape | None, list[str]]:
    problems = [
        f"{name}: needs cpus as well; a short file has no numbered CPUs"
        for name in ("siblings", "offline", "isolated")
        if getattr(document, name)
    ]
    if document.cores is None:
        return None, [*problems, "cores: is required where there are no cpus"]
    threads = document.threads_per_core or 1
    if document.cores * threads > MOST_CPUS:
        problems.append(f"cores: {document.cores} x {threads} threads are more than {MOST_CPUS}")
    parts = {name: getattr(document, name) or 1 for name in ("sockets", "numa_nodes", "llcs")}
    problems += [
        f"{name}: {count} cannot share {document.cores} cores"
        for name, count in parts.items()
        if count > document.cores
    ]
    if problems:
        return None, problems
    architecture = document.architecture
    return MachineShape.uniform(document.cores, threads, **parts, architecture=architecture), []


def _full(document: MachineDocument) -> tuple[MachineShape, list[str]]:
    machine = MachineShape(
        document.architecture,
        tuple(sorted(document.cpus or (), key=lambda cpu: cpu.id)),
        document.offline,
        document.isolated,
    )
    return machine, [*_numbering(machine), *_contradictions(document, machine)]


def _numbering(machine: MachineShape) -> Iterator[str]:
    online = Counter(cpu.id for cpu in machine.cpus)
    twice = sorted(cpu for cpu, times in online.items() if times > 1)
    if twice:
        yield f"cpus: id {twice[0]} is given twice"
    if max(online) >= CPU_LIMIT:
        yield f"cpus: id {max(online)} is not below {CPU_LIMIT}"
    lists = [("offline", machine.offline), ("isolated", machine.isolated)]
    for name, cpus in lists:
        if any(not 0 <= cpu < CPU_LIMIT for cpu in cpus):
            yield f"{name}: must be CPU ids from 0 to {CPU_LIMIT - 1}"
    both = sorted(online.keys() & set(machine.offline))
    if both:
        yield f"offline: CPU {both[0]} is also among the cpus, which are online"


def _contradictions(document: MachineDocument, machine: MachineShape) -> Iterator[str]:
    places: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    for cpu in machine.cpus:
        places[cpu.core].add((cpu.socket, cpu.node))
    for core, where in sorted(places.items()):
        if len(where) > 1:
            yield f"cpus: core {core} is in more than one socket or NUMA node"
    for name in _DERIVED:
        declared, derived = getattr(document, name), getattr(machine, name)
        if declared is not None and declared != derived:
            yield f"{name}: is {_brief(declared)}, but the cpus make {_brief(derived)}"


def _brief(value: object) -> str:
    text = repr(value).replace("(", "[").replace(",)", "]").replace(")", "]")
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
