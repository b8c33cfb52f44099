"""Makes the page: tables of a report, with style but without scripts or outside resources."""

from collections.abc import Iterable, Sequence
from html import escape

from temper_core.console import printable
from temper_plugin_tracer.trace.analysis.report import (
    LEVELS,
    Report,
    Share,
    Subject,
    cpus_told,
)

__all__ = ["page_of"]

STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em;max-width:90em}"
    "table{border-collapse:collapse;margin:.5em 0 2em}"
    "th,td{padding:.2em .7em;text-align:right;border-bottom:1px solid #8884}"
    "th:first-child,td:first-child,.t{text-align:left}"
    "details{margin:.3em 0}summary{cursor:pointer}"
    ".bar{display:flex;height:1.2em;width:40em;max-width:100%}"
    ".bar span{height:100%}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
COLOURS = {
    "idle": "#bbb",
    "interrupt": "#d62728",
    "softirq": "#ff7f0e",
    "throttled": "#9467bd",
    "unknown": "#ddd",
    "others": "#888",
    "engine": "#e377c2",
    "kernel thread": "#8c564b",
    "real-time thread": "#bcbd22",
}
THREADS = ("#1f77b4", "#2ca02c", "#17becf", "#3b5b92", "#66a61e")


def page_of(report: Report, title: str) -> str:
    """Return the page of *report*. Every text of the trace is escaped."""
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<title>{_text(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{_text(title)}</h1><p>{_text(_summary(report))}</p>",
        *(_level(report, level) for level in LEVELS),
        _slowest(report),
        _edges(report),
        "</body></html>",
    ]
    return "\n".join(parts)


def _summary(report: Report) -> str:
    lost = sum(report.lost.values())
    throttling = "" if report.knows_throttling else "Throttled threads look like waiting ones. "
    whole, threads = report.whole_threads, report.threads
    selected = f"{whole} of them selected and shown, " if whole < threads else ""
    return (
        f"{report.length_ns / 1e9:.3f} s, {report.events} events, {threads} threads, {selected}"
        f"{cpus_told(report)}, {lost} lost events. {throttling}Times are in milliseconds."
    )


def _level(report: Report, level: str) -> str:
    subjects = report.subjects[level]
    heads = (level, "run", "wait", "wait p50", "wait p99", "wait max", "wake-ups", "migrations")
    rows = (
        (
            one.name,
            _ms(one.run_ns),
            _ms(one.wait_ns),
            _ms(one.waits.p50_ns),
            _ms(one.waits.p99_ns),
            _ms(one.waits.longest_ns),
            str(one.wakeups),
            str(one.migrations),
        )
        for one in subjects
    )
    shares = "".join(_blockers(one, level) for one in subjects if one.blockers)
    return (
        f"<h2>By {level}</h2>{_table(heads, rows)}<h3>Threads that ran while it waited</h3>{shares}"
    )


def _blockers(subject: Subject, level: str) -> str:
    by = level if level in subject.blockers else "thread"
    shares = subject.blockers[by]
    rows = ((s.party, s.kind, s.relation, _ms(s.ns), f"{s.percent:.1f} %") for s in shares)
    table = _table(("party", "kind", "relation", "ms", "share"), rows)
    head = f"{_text(subject.name)}: {_ms(subject.wait_ns)} ms {_bar(shares)}"
    return f"<details><summary>{head}</summary>{table}</details>"


def _bar(shares: Sequence[Share]) -> str:
    spans = (
        f'<span style="width:{share.percent}%;background:'
        f'{COLOURS.get(share.kind, THREADS[number % len(THREADS)])}"'
        f' title="{_text(share.party)} {share.percent} %"></span>'
        for number, share in enumerate(shares)
    )
    return f'<span class="bar">{"".join(spans)}</span>'


def _slowest(report: Report) -> str:
    rows = (
        (
            wake.woken,
            _ms(wake.at_ns),
            _ms(wake.wait_ns),
            str(wake.cpu),
            ", ".join(f"{share.party} {share.percent:.1f} %" for share in wake.blockers[:3]),
            " < ".join(link.waker for link in wake.chain),
        )
        for wake in report.slowest
    )
    heads = ("woken", "at", "waited", "CPU", "behind", "woken by")
    return f"<h2>Slowest wake-ups</h2>{_table(heads, rows)}"


def _edges(report: Report) -> str:
    rows = (
        (edge.waker, edge.woken, str(edge.count), _ms(edge.waits_ns), _ms(edge.longest_ns))
        for edge in report.edges
    )
    return (
        f"<h2>Wakers and wakees</h2>{_table(('waker', 'wakes', 'times', 'wait', 'longest'), rows)}"
    )


def _table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _ms(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e6:.3f}"


def _text(text: str) -> str:
    return escape(printable(text), quote=True)
