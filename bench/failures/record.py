"""Makes the record of a failure, and reads records again."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import asdict, frozen

from bench.failures.watch import Change, Timeline, stock_spans
from bench.failures.windows import Json, phases, requests_of, windows, worst

FORMAT = 1


class UnreadableRecord(Exception):  # noqa: N818 - reads as the fact it reports
    """Raised for a line that is no record of this format, with its file and number."""


@frozen
class Played:
    """What was seen of a failure. ``marks`` and ``ended_s`` are times of CLOCK_MONOTONIC in s.

    ``told`` is what the agent told, ``seen`` the JSON of ``load serve``.
    """

    told: Json
    marks: Sequence[tuple[float, str]]
    changes: Sequence[Change]
    seen: Json
    ended_s: float


def record_of(name: str, played: Played) -> Json:
    """Return the record. All its times are in seconds since the failure, the first mark."""
    struck_s = played.marks[0][0]
    requests = requests_of(played.seen, struck_s)
    spans = [
        (begin - struck_s, end - struck_s)
        for begin, end in stock_spans(played.changes, played.ended_s)
    ]
    by_second = windows(requests)
    return {
        "failure": name,
        **played.told,
        "marks": [[round(at_s - struck_s, 3), what] for at_s, what in played.marks],
        "timeline": asdict(Timeline.of(played.changes, struck_s, played.ended_s)),
        "phases": phases(requests, spans),
        "worst": worst([each for each in by_second if each["at_s"] >= 0]),
        "unanswered": played.seen["unanswered"],
        "client_late_ms": round(played.seen["client_late_ns"] / 1e6, 3),
        "windows": [list(each.values()) for each in by_second],
    }


def read(paths: Iterable[Path]) -> list[Json]:
    """Return all records of the files. Raise UnreadableRecord for a line that is none."""
    return [
        _parsed(line, f"{path}:{number}")
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
    ]


def _parsed(line: str, place: str) -> Json:
    try:
        record = json.loads(line)
    except ValueError as problem:
        raise UnreadableRecord(f"{place}: {problem}") from problem
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise UnreadableRecord(f"{place}: no record of format {FORMAT}")
    return record
