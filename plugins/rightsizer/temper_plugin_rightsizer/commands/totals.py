"""What the containers of a report request together, now and by the advice."""

from collections.abc import Iterator

from attrs import frozen

from temper_core.console import Row
from temper_core.observed import number, rows, table

GIB = 1024.0**3
PER_UNIT = {"cpu_request_millis": 1000.0, "memory_request_bytes": GIB}


@frozen
class Total:
    """Cores or GiB that are requested *now*, and by the *advice*, of all replicas.

    Only containers with a request and with advice on it count. *unset* is the number of the
    replicas with advice but no request.
    """

    now: float
    advice: float
    unset: int


def total_of(document: Row, field: str) -> Total:
    """Return the total of a *field* of ``Resources``: ``cpu_request_millis`` or the memory's."""
    pairs = list(_pairs(document, field))
    unit = PER_UNIT[field]
    set_pairs = [(now, advice, count) for now, advice, count in pairs if now is not None]
    return Total(
        now=sum(now * count for now, _, count in set_pairs) / unit,
        advice=sum(advice * count for _, advice, count in set_pairs) / unit,
        unset=sum(round(count) for now, _, count in pairs if now is None),
    )


def as_line(document: Row) -> str:
    """Return both totals in one line, the identified savings. They are no realized ones."""
    parts = []
    for field, name, unit in (
        ("cpu_request_millis", "CPU", "cores"),
        ("memory_request_bytes", "memory", "GiB"),
    ):
        total = total_of(document, field)
        unset = f" ({total.unset} without a request)" if total.unset else ""
        parts.append(f"{name} {total.now:.2f} -> {total.advice:.2f} {unit}{unset}")
    return f"requested in all: {', '.join(parts)}"


def as_sentence(document: Row) -> str:
    """Return the totals as a sentence."""
    line = as_line(document)
    return f"{line[:1].upper()}{line[1:]}."


def _pairs(document: Row, field: str) -> Iterator[tuple[float | None, float, float]]:
    """Yield the request now, by the advice, and the number of replicas."""
    for row in rows(document, "containers"):
        advice = number(table(row, "recommended"), field)
        if advice is not None:
            yield number(table(row, "current"), field) or None, advice, number(row, "replicas") or 1
