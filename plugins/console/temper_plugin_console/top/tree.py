"""Threads as a tree of pods, containers, processes and threads, with the sums of each. No I/O."""

from collections.abc import Callable, Iterator, Sequence

from temper_core.observed import Row, count, is_thread, number, pod_key, text, thread_name
from temper_plugin_console.top.view import Branch, View

KERNEL = "kernel"
INDENT = "  "
OPEN, FOLDED, LEAF = "- ", "+ ", "  "

Order = Callable[[Row], tuple[float, str]]


def tree_rows(threads: Sequence[Row], view: View, order: Order) -> list[Row]:
    """Return *threads* with a row before each group of them, as far as *view* shows it.

    A row has its name with its indentation as ``label``. The row of a group has its ``branch``, the
    sum of the CPU time of its threads, and the longest wait among them. A process of one thread is
    that thread alone.
    """
    return list(_below((), threads, view, order))


def _below(branch: Branch, threads: Sequence[Row], view: View, order: Order) -> Iterator[Row]:
    """Yield the rows of *threads*, which all belong to *branch*, in *order*."""
    groups: dict[str, list[Row]] = {}
    for thread in threads:
        groups.setdefault(_LEVELS[len(branch)](thread), []).append(thread)
    rows = [_row((*branch, name), members) for name, members in groups.items()]
    for row, members in sorted(
        zip(rows, groups.values(), strict=True), key=lambda pair: order(pair[0])
    ):
        yield from _shown(row, members, view, order)


def _shown(row: Row, members: Sequence[Row], view: View, order: Order) -> Iterator[Row]:
    branch: Branch = row["branch"]
    depth = sum(map(bool, branch))
    if len(branch) == len(_LEVELS):
        yield {**members[0], "label": f"{INDENT * (depth - 1)}{LEAF}{thread_name(members[0])}"}
        return
    is_group = bool(branch[-1]) and (len(branch) != _PROCESS or len(members) > 1)
    if not is_group:
        yield from _below((*branch[:-1], ""), members, view, order)
        return
    is_folded = view.is_folded(branch)
    mark = FOLDED if is_folded else OPEN
    yield {**row, "label": f"{INDENT * (depth - 1)}{mark}{row['name']}"}
    if not is_folded:
        yield from _below(branch, members, view, order)


def _row(branch: Branch, members: Sequence[Row]) -> Row:
    """Return the row of a group, from its name and its threads."""
    if len(branch) == len(_LEVELS):
        return {**members[0], "branch": branch}
    row: dict[str, object] = {
        "branch": branch,
        "name": branch[-1],
        "cpu_used": sum(number(member, "cpu_used") or 0.0 for member in members),
        "run_delay_ratio": max(number(member, "run_delay_ratio") or 0.0 for member in members),
    }
    if len(branch) == _PROCESS:
        row |= {
            "name": text(members[0], "process"),
            "tid": count(members[0], "tgid"),
            **{key: members[0][key] for key in ("user", "memory_bytes") if key in members[0]},
        }
    return row


def _owner(thread: Row) -> str:
    """Return the pod of a thread, its cgroup outside of pods, or that it is the kernel's."""
    if thread.get("is_kthread") is True:
        return KERNEL
    return pod_key(thread) or f"/{text(thread, 'cgroup').rstrip('/')}"


def _process(thread: Row) -> str:
    return str(count(thread, "tgid") or "") if is_thread(thread) else ""


def _thread(thread: Row) -> str:
    return str(count(thread, "tid") or "others")


_LEVELS: Sequence[Callable[[Row], str]] = (
    _owner,
    lambda thread: text(thread, "container"),
    _process,
    _thread,
)
_PROCESS = 3
"""The length of the branch of a process."""
