"""A report as a table, CSV or Markdown."""

import csv
import io
from collections.abc import Sequence

from temper_core.console import Row, columns, folded, printable
from temper_core.observed import number, pod_key, rows, table, text
from temper_plugin_rightsizer.commands.totals import as_lines

HEADS = ("container", "verdict", "CPU request", "CPU limit", "memory request", "memory limit")
CSV_COLUMNS = (
    "namespace",
    "pod",
    "container",
    "verdict",
    "confidence",
    "learned_s",
    "keeps",
    "hot_threads",
    "cpu_request_millis",
    "recommended_cpu_request_millis",
    "cpu_limit_millis",
    "recommended_cpu_limit_millis",
    "memory_request_bytes",
    "recommended_memory_request_bytes",
    "memory_limit_bytes",
    "recommended_memory_limit_bytes",
    "reasons",
    "owner",
    "replicas",
    "degraded",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
MIB = 1024 * 1024


def as_table(document: Row, *, explains: bool) -> str:
    """Return the report in columns, with the reasons of each container if *explains*."""
    containers = rows(document, "containers")
    marked = [(f"{mark} {name}", *others) for mark, name, *others in map(cells, containers)]
    reasons = [reasons_of(row) if explains else () for row in containers]
    lines = columns((f"  {HEADS[0]}", *HEADS[1:], "confidence"), marked, reasons)
    if left_out := number(document, "left_out"):
        lines.append(f"{left_out:g} containers that use less are left out")
    return "\n".join((*lines, *map(folded, as_lines(document))))


def as_markdown(document: Row) -> str:
    """Return the report as a table of Markdown."""
    lines = [f"| {' | '.join((*HEADS, 'why'))} |", f"|{' --- |' * (len(HEADS) + 1)}"]
    for row in rows(document, "containers"):
        shown = (*cells(row)[1:-1], "; ".join(reasons_of(row)))
        lines.append(f"| {' | '.join(escaped(cell) for cell in shown)} |")
    totals = (f"{escaped(line)}." for line in as_lines(document))
    return "\n".join((*lines, "", "\n\n".join(totals)))


def as_csv(document: Row) -> str:
    """Return the report as CSV (RFC 4180, but lines end with a line feed only).

    A ``'`` precedes text that a spreadsheet would run. Standard output replaces carriage returns.
    """
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in rows(document, "containers"):
        writer.writerow([_csv_cell(row, column) for column in CSV_COLUMNS])
    return output.getvalue().rstrip("\n")


def needs_change(document: Row) -> list[Row]:
    """Return the containers whose advice is not to keep everything."""
    return [row for row in rows(document, "containers") if row.get("keeps") is not True]


def cells(row: Row) -> tuple[str, ...]:
    """Return a mark, a cell for each of HEADS, and the confidence."""
    now, wanted = table(row, "current"), table(row, "recommended")
    return (
        "=" if row.get("keeps") is True else "*",
        _name(row),
        _verdict(row),
        _change(_cores(now, "cpu_request_millis"), _cores(wanted, "cpu_request_millis")),
        _change(_cores(now, "cpu_limit_millis"), _cores(wanted, "cpu_limit_millis")),
        _change(_mib(now, "memory_request_bytes"), _mib(wanted, "memory_request_bytes")),
        _change(_mib(now, "memory_limit_bytes"), _mib(wanted, "memory_limit_bytes")),
        text(row, "confidence"),
    )


def _name(row: Row) -> str:
    """Return the pod, or the workload with its replicas, and the container."""
    if text(row, "pod") or not (replicas := number(row, "replicas")):
        pod, container = pod_key(row), text(row, "container")
        # The container of a workload of a plain host has the name of the workload.
        return pod if pod == container else "/".join(filter(None, (pod, container)))
    workload = text(row, "owner").partition("/")[2]
    name = "/".join(filter(None, (text(row, "namespace"), workload, text(row, "container"))))
    return f"{name} x{replicas:.0f}"


def _verdict(row: Row) -> str:
    if row.get("degraded") is True:
        return f"{text(row, 'verdict')} (degraded)"
    names = texts(row, "hot_threads")
    return f"{text(row, 'verdict')} ({', '.join(names)})" if names else text(row, "verdict")


def _change(now: str, wanted: str) -> str:
    return now if now == wanted else f"{now} -> {wanted}"


def _cores(resources: Row, key: str) -> str:
    millis = number(resources, key)
    return "none" if millis is None else f"{millis / 1000:g}"


def _mib(resources: Row, key: str) -> str:
    size = number(resources, key)
    return "none" if size is None else f"{size / MIB:.0f}Mi"


def _csv_cell(row: Row, column: str) -> str:
    if column.startswith("recommended_"):
        value = table(row, "recommended").get(column.removeprefix("recommended_"))
    elif column.endswith(("_millis", "_bytes")):
        value = table(row, "current").get(column)
    elif column == "hot_threads":
        value = "; ".join(texts(row, column))
    elif column == "reasons":
        value = "; ".join(reasons_of(row))
    else:
        value = row.get(column)
    shown = "" if value is None else printable(str(value))
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def texts(row: Row, key: str) -> Sequence[str]:
    """Return the texts in a list of *row*."""
    values = row.get(key)
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def reasons_of(row: Row) -> Sequence[str]:
    """Return the reasons of *row*, and the suggestions."""
    suggested = [text(each, "reason") for each in rows(row, "suggestions")]
    return [*texts(row, "reasons"), *(f"suggestion: {reason}" for reason in suggested)]


def escaped(cell: str) -> str:
    """Return *cell* without any control or Markdown of its own."""
    shown = printable(cell)
    for character in "\\|<>`*_[]":
        shown = shown.replace(character, f"\\{character}")
    return shown
