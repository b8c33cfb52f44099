"""The tables of the panes: rows, order and columns."""

from collections.abc import Callable, Mapping, Sequence

from attrs import asdict, evolve

from temper_core.observed import (
    Row,
    count,
    cpu_list,
    is_thread,
    layer_of,
    number,
    pod_key,
    pressure_of,
    rows,
    text,
    thread_name,
    whole_numbers,
)
from temper_plugin_console.top.columns import Column
from temper_plugin_console.top.processes import Process
from temper_plugin_console.top.tree import tree_rows
from temper_plugin_console.top.view import View
from temper_plugin_console.top.waits import WAITS, wait_rows, window_of

NOTHING = "-"
BUSY, TIGHT = 0.5, 0.1
"""Shares of waiting or throttling from which a cell is red, and yellow."""
THOUSAND = 1_000.0

NO_PROCESSES: Mapping[int, Process] = {}
MEMORY_UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))
_NAMES = ("name", "comm", "process", "user", "layer", "tier", "profile")

Order = Callable[[Row], tuple[float, str]]


def listed(
    pane: str, document: Row, view: View, processes: Mapping[int, Process] = NO_PROCESSES
) -> list[Row]:
    """Return the rows of *pane* that match the filter of *view*, in its order."""
    pattern = view.filter.casefold()
    matching = [row for row in _all_rows(pane, document, processes) if _holds(row, pattern)]
    order = _ORDERS[pane][view.sort]
    if pane == "threads" and view.is_tree:
        return tree_rows(matching, view, order)
    return sorted(matching, key=order)


def _all_rows(pane: str, document: Row, processes: Mapping[int, Process]) -> list[Row]:
    if pane == "waits":
        return wait_rows(window_of(document))
    window_s = number(document, "window_s") or 0.0
    if pane == "pods":
        return [_with_pressure(row, document) for row in rows(document, pane)]
    return [
        {**row, "window_s": window_s, **_of_process(row, processes)} for row in rows(document, pane)
    ]


def _of_process(row: Row, processes: Mapping[int, Process]) -> Row:
    process = processes.get(count(row, "tgid") or 0)
    return {} if process is None else asdict(process)


def _with_pressure(row: Row, document: Row) -> Row:
    return {**row, "pressure": pressure_of(document, pod_key(row))}


def _holds(row: Row, pattern: str) -> bool:
    """Whether *pattern* is in one of a row's names, such as its pod or its layer."""
    if not pattern:
        return True
    names = [text(row, key) for key in _NAMES]
    others = [text(row, key) for key in ("who", "whose", "other", "others")]
    return any(pattern in name.casefold() for name in (pod_key(row), *names, *others))


def share_text(value: float | None) -> str:
    """Return a ratio in percent, ``-`` for an unknown one. Of CPU time, 100 % is one CPU."""
    return NOTHING if value is None else f"{value:.1%}"


def memory_text(size: float | None) -> str:
    """Return bytes in the largest unit of 1024 in which they are at least one, ``-`` for none."""
    if size is None or size < 0:
        return NOTHING
    scale, unit = next((each for each in MEMORY_UNITS if size >= each[0]), (1, ""))
    return f"{size / scale:.0f}{unit}"


def count_text(value: int | None) -> str:
    """Return a count, ``-`` for an unknown one."""
    return NOTHING if value is None else str(value)


def _share(key: str) -> Callable[[Row], str]:
    return lambda row: share_text(number(row, key))


def _cpu_time(key: str) -> Callable[[Row], str]:
    """Return the reader of a CPU time, as wide as 100.0%: columns stay while rows are scrolled."""
    return lambda row: f"{share_text(number(row, key)):>6}"


def _memory(row: Row) -> str:
    return memory_text(number(row, "memory_bytes"))


def _process_memory(row: Row) -> str:
    return _memory(row) if "memory_bytes" in row else ""


def _count(key: str) -> Callable[[Row], str]:
    return lambda row: count_text(count(row, key))


def _of_single_threads(column: Column) -> Column:
    """Return *column*, empty for a group of threads that has no value of its own."""
    read = column.read

    def of_row(row: Row) -> str:
        cell = read(row)
        return "" if cell == NOTHING and "branch" in row else cell

    return evolve(column, read=of_row)


def _text(key: str) -> Callable[[Row], str]:
    return lambda row: text(row, key)


def _switches(row: Row) -> str:
    """Return switches per second, voluntary and involuntary."""
    voluntary, involuntary = count(row, "voluntary"), count(row, "involuntary")
    window_s = number(row, "window_s") or 0.0
    if voluntary is None or involuntary is None or window_s <= 0:
        return NOTHING
    rate = (voluntary + involuntary) / window_s
    return f"{rate / THOUSAND:.1f}k" if rate >= THOUSAND else f"{rate:.0f}"


def _waiting(row: Row) -> str:
    """Return the time that a thread had waited when it was observed, in ms."""
    waited = number(row, "waiting_s") or 0.0
    return f"{waited * THOUSAND:.0f} ms" if waited > 0 else ""


def _by_share(key: str) -> Callable[[Row], str]:
    def style(row: Row) -> str:
        share = number(row, key) or 0.0
        return "red" if share >= BUSY else "yellow" if share >= TIGHT else ""

    return style


def _layer_style(row: Row) -> str:
    layer = text(row, "layer")
    if not layer:
        return "dim"
    return "cyan" if text(row, "expected_layer") in ("", layer) else "red"


def _falling(key: str) -> Order:
    return lambda row: (-(number(row, key) or 0.0), _name_of(row))


def _name_of(row: Row) -> str:
    return f"{pod_key(row)}/{text(row, 'name')}{thread_name(row)}{text(row, 'who')}"


def _by_name(row: Row) -> tuple[float, str]:
    name = text(row, "name") or text(row, "comm") or text(row, "who") or pod_key(row)
    return (0.0 if is_thread(row) or not row.get("comm") else 1.0, name.casefold())


_ORDERS: Mapping[str, Mapping[str, Order]] = {
    "layers": {
        "cpu": _falling("cpus_used"),
        "wait": _falling("fallback_ratio"),
        "name": _by_name,
    },
    "pods": {"cpu": _falling("cpu_used"), "wait": _falling("run_delay"), "name": _by_name},
    "threads": {
        "cpu": _falling("cpu_used"),
        "wait": _falling("run_delay_ratio"),
        "name": _by_name,
    },
    "waits": {"cpu": _falling("times"), "wait": _falling("waited_s"), "name": _by_name},
}
LAYERS: Sequence[Column] = (
    Column("layer", _text("name"), least=8, style=lambda _: "cyan"),
    Column("kind", _text("kind"), rank=2),
    Column("cpus", lambda row: cpu_list(whole_numbers(row, "cpus")) or NOTHING),
    Column("used", _cpu_time("cpus_used"), right=True),
    Column("history", _text("history"), rank=1),
    Column("util", _share("util"), right=True),
    Column("tasks", _count("tasks"), right=True),
    Column("fallback", _share("fallback_ratio"), right=True, style=_by_share("fallback_ratio")),
    Column("demoted", lambda row: "yes" if row.get("demoted") is True else "", rank=3),
    Column("reason", _text("reason"), rank=4),
)
PODS: Sequence[Column] = (
    Column("pod", pod_key, least=14),
    Column("tier", _text("tier"), least=6),
    Column("profile", _text("profile"), rank=2),
    Column("used", _cpu_time("cpu_used"), right=True),
    Column("history", _text("history"), rank=1),
    Column("delay", _cpu_time("run_delay"), right=True, style=_by_share("run_delay")),
    Column("throttled", _share("throttled_ratio"), right=True, style=_by_share("throttled_ratio")),
    Column("pressure", _share("pressure"), right=True, style=_by_share("pressure")),
    Column("threads", _count("threads"), right=True),
    Column("memory", _memory, right=True, rank=1),
)


THREADS: Sequence[Column] = (
    Column("tid", _count("tid"), right=True),
    Column("thread", thread_name, least=15),
    Column("pod", pod_key, least=12, rank=1),
    Column("cpu", _count("cpu"), right=True, rank=2),
    Column("used", _cpu_time("cpu_used"), right=True),
    Column("wait", _share("run_delay_ratio"), right=True, style=_by_share("run_delay_ratio")),
    Column("sw/s", _switches, right=True, rank=3),
    Column("migr", _count("migrations"), right=True, rank=4),
    Column("layer", layer_of, least=10, style=_layer_style),
    Column("waiting", _waiting, right=True, rank=5, style=lambda _: "red"),
    Column("user", _text("user"), least=4, rank=6),
    Column("memory", _process_memory, right=True, rank=7),
    Column("process", _text("process"), rank=8),
)
TREE: Sequence[Column] = (
    Column("thread", _text("label"), least=20),
    *(_of_single_threads(column) for column in THREADS if column.title not in ("thread", "pod")),
)
"""The columns of the threads as a tree."""
COLUMNS: Mapping[str, Sequence[Column]] = {
    "layers": LAYERS,
    "pods": PODS,
    "threads": THREADS,
    "waits": WAITS,
}
