"""The CPU map: every core with its siblings, their layers, load and busiest threads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from temper_core.observed import (
    Row,
    integers,
    is_thread,
    number,
    pod_key,
    rows,
    table,
    text,
    whole_numbers,
)

if TYPE_CHECKING:
    from rich.text import Text

CELL = 38
WIDEST = 160
LAYER_CELLS = 10
BUSY, HALF = 0.9, 0.5
COLOURS = ("green", "cyan", "yellow", "magenta", "blue", "bright_green", "bright_cyan")


@frozen
class _CpuView:
    """By CPU: the owning layer, the load, and the busiest thread that was last seen there."""

    owners: Mapping[int, str]
    busy: Mapping[int, float]
    guessed: Mapping[int, float]
    occupants: Mapping[int, Row]
    colours: Mapping[str, str]


def map_lines(document: Row, busy: Mapping[int, float], width: int) -> "list[Text]":
    """Draw the cores in *width* cells, a core's siblings beside each other and joined by ``|``.

    *busy* is the kernel's count, by CPU. Without it the load is the sum of the threads last seen
    there, and is marked by ``~``: a thread that migrates counts for its last CPU alone.
    """
    from rich.text import Text

    cores = _cores(document)
    if not cores:
        return [Text("the observation has no CPUs")]
    view = _cpu_view(document, busy)
    slots = max(1, min(width, WIDEST) // CELL)
    widest = max(map(len, cores))
    if widest > slots:
        parts = [core[at : at + slots] for core in cores for at in range(0, len(core), slots)]
        return [_line([part], view) for part in parts]
    beside = slots // widest
    return [_line(cores[at : at + beside], view) for at in range(0, len(cores), beside)]


def _cores(document: Row) -> list[tuple[int, ...]]:
    siblings = table(document, "machine").get("siblings")
    if not isinstance(siblings, list):
        return []
    lists = [cpus for cpus in siblings if isinstance(cpus, list)]
    return [core for cpus in lists if (core := tuple(integers(cpus)))]


def _cpu_view(document: Row, busy: Mapping[int, float]) -> _CpuView:
    owners: dict[int, str] = {}
    colours: dict[str, str] = {}
    for layer in rows(document, "layers"):
        name = text(layer, "name")
        colours[name] = COLOURS[len(colours) % len(COLOURS)]
        for cpu in whole_numbers(layer, "cpus"):
            owners[cpu] = f"{owners[cpu]},{name}" if cpu in owners else name
    occupants: dict[int, Row] = {}
    guessed: dict[int, float] = {}
    for thread in filter(is_thread, rows(document, "threads")):
        place, used = number(thread, "cpu"), number(thread, "cpu_used") or 0.0
        if place is None:
            continue
        cpu = int(place)
        guessed[cpu] = guessed.get(cpu, 0.0) + used
        busiest = occupants.get(cpu)
        if busiest is None or used > (number(busiest, "cpu_used") or 0.0):
            occupants[cpu] = thread
    return _CpuView(owners, busy, guessed, occupants, colours)


def _line(cores: Sequence[Sequence[int]], view: _CpuView) -> "Text":
    from rich.text import Text

    line = Text()
    for core in cores:
        for number_of_sibling, cpu in enumerate(core):
            if number_of_sibling:
                line.append("|", "dim")
            elif line:
                line.append(" ")
            for part, style in _cell(cpu, view):
                line.append(part, style)
    line.rstrip()
    return line


def _cell(cpu: int, view: _CpuView) -> Iterator[tuple[str, str]]:
    """Yield the parts of one CPU, CELL - 1 cells wide, each with its style."""
    from temper_core.console import shown
    from temper_plugin_console.top.columns import fitted

    owner = view.owners.get(cpu, "")
    share = view.busy.get(cpu)
    load = share if share is not None else min(1.0, view.guessed.get(cpu, 0.0))
    mark = " " if share is not None else "~"
    style = "red" if load >= BUSY else "yellow" if load >= HALF else ""
    head = f"{cpu:>4} "
    yield head, "bold"
    yield fitted(shown(owner or "-"), LAYER_CELLS), view.colours.get(owner, "dim")
    yield f"{mark}{load:>4.0%} ", style
    rest = CELL - 1 - len(head) - LAYER_CELLS - len("~100% ")
    yield fitted(shown(_who(view.occupants.get(cpu))), rest), ""


def _who(thread: Row | None) -> str:
    if thread is None:
        return ""
    pod = pod_key(thread)
    return f"{text(thread, 'comm')} [{pod}]" if pod else text(thread, "comm")
