"""Makes the record of a failure, and reads records again."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import asdict, frozen

from bench.failures.watch import Change, Timeline, stock_spans
from bench.failures.windows import Json, phases, requests_of, windows, worst
from bench.record_files import read_records

FORMAT = 1


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
    return list(read_records(paths, FORMAT))
