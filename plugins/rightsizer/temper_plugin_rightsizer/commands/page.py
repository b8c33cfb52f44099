"""A report as one page of HTML, with style but without scripts or outside resources."""

from collections.abc import Iterator
from html import escape

from temper_core.console import Row, printable
from temper_core.observed import number, rows, table, text
from temper_plugin_rightsizer.commands.formats import HEADS, cells, needs_change, reasons_of, texts
from temper_plugin_rightsizer.commands.plots import cpu_plot, memory_plot
from temper_plugin_rightsizer.commands.totals import as_lines

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = (
    ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--soft:#8884;--bar:#4477aa;"
    "--now:#777;--advised:#228833;--limit:#cc3311}"
    "@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#111;--bar:#77aadd;"
    "--now:#aaa;--advised:#44bb99;--limit:#ee8866}}"
    "body{font:14px system-ui,sans-serif;margin:2em;max-width:90em;color:var(--ink);"
    "background:var(--paper)}"
    "table{border-collapse:collapse;margin:.5em 0 2em}"
    "th,td{padding:.2em .7em;text-align:left;border-bottom:1px solid var(--soft)}"
    "section{border-top:1px solid var(--soft);padding:.5em 0 1em}h2{margin:.2em 0}"
    "svg{display:block;margin:.4em 0;max-width:100%}"
    "svg text{fill:var(--ink);font-size:11px}.tick{text-anchor:middle}"
    ".axis{stroke:var(--soft)}.peak{fill:var(--bar);opacity:.35}.usual{fill:var(--bar)}"
    ".half{stroke:var(--paper);stroke-width:2}"
    ".mark{fill:none;stroke-width:2}.now{stroke:var(--now);stroke-dasharray:4 3}"
    ".advised{stroke:var(--advised)}.limit{stroke:var(--limit)}"
    ".limit.now{stroke-dasharray:4 3}"
)
LEGEND = (
    "Bars are what was used: the dark part from P10 to P99 with a gap at P50, the light part up to "
    "the peak. Lines are requests and limits: dashed as they are now, solid as advised, limits in "
    "red."
)
MOST_PLOTTED = 500
"""Containers with plots, those that should change first. Each takes some 4 KB."""


def as_html(document: Row) -> str:
    """Return the page. Every text of the report is escaped."""
    containers = rows(document, "containers")
    changing = needs_change(document)
    kept = [row for row in containers if row.get("keeps") is True]
    plotted = [*changing, *kept][:MOST_PLOTTED]
    title = "Rightsizing"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>{_text(_summary(document, len(changing)))}</p>",
        *(f"<p>{_text(_sentence(line))}</p>" for line in as_lines(document)),
        *(f"<p>{_text(note)}</p>" for note in texts(document, "notes")),
        _table(containers),
        f"<p>{LEGEND}</p>",
        *(_section(row) for row in plotted),
    ]
    if left := len(containers) - len(plotted):
        parts.append(f"<p>{left} more containers are in the table only.</p>")
    return "\n".join((*parts, "</body></html>"))


def _summary(document: Row, changing: int) -> str:
    hours = (number(document, "window_s") or 0) / 3600
    count = len(rows(document, "containers"))
    at = text(document, "at")
    return f"{at}: {changing} of {count} containers should change, by the last {hours:g} h."


def _sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."


def _table(containers: list[Row]) -> str:
    heads = "".join(f"<th>{_text(head)}</th>" for head in ("", *HEADS, "confidence"))
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in cells(row))}</tr>"
        for row in containers
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _section(row: Row) -> str:
    _, name, verdict, *_ = cells(row)
    return "".join(
        (
            f"<section><h2>{_text(name)}</h2><p>{_text(verdict)}, ",
            f"confidence {_text(text(row, 'confidence'))}</p>",
            *_plots(row),
            f"<ul>{''.join(f'<li>{_text(reason)}</li>' for reason in reasons_of(row))}</ul>",
            "</section>",
        )
    )


def _plots(row: Row) -> Iterator[str]:
    if table(row, "used"):
        yield cpu_plot(row)
        yield memory_plot(row)


def _text(content: str) -> str:
    return escape(printable(content), quote=True)
