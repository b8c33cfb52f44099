"""What the containers of a report request together, now and by the advice."""

from collections.abc import Iterator

from attrs import frozen

from temper_core.console import Row
from temper_core.observed import number, rows, table

GIB = 1024.0**3
PER_UNIT = {"cpu_request_millis": 1000.0, "memory_request_bytes": GIB}


HOURS_OF_MONTH = 730
"""Of a mean month: 365 days of 24 hours, by 12."""


@frozen
class Savings:
    """What a month costs less if all requests follow the advice. An estimate.

    It is real only once there are fewer or smaller nodes. What was realized is never in it.
    """

    cores: float
    gib: float
    core_hour: float
    gib_hour: float

    @property
    def per_month(self) -> float:
        """The amount, in the currency of the prices. Negative if more is advised."""
        hourly = self.cores * self.core_hour + self.gib * self.gib_hour
        return round(hourly * HOURS_OF_MONTH, 2)

    @property
    def text(self) -> str:
        """The amount with its numbers."""
        return (
            f"Identified savings, an estimate: {self.per_month:.2f} a month = "
            f"({self.cores:.2f} cores x {self.core_hour:g} + {self.gib:.2f} GiB x "
            f"{self.gib_hour:g}) x {HOURS_OF_MONTH} h"
        )


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


def savings_of(document: Row) -> Savings | None:
    """Return the identified savings by the ``prices`` of *document*. None without any."""
    prices = table(document, "prices")
    core_hour, gib_hour = number(prices, "core_hour"), number(prices, "gib_hour")
    if core_hour is None and gib_hour is None:
        return None
    cpu, memory = (total_of(document, field) for field in PER_UNIT)
    return Savings(
        cpu.now - cpu.advice, memory.now - memory.advice, core_hour or 0.0, gib_hour or 0.0
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
    told = f"requested in all: {', '.join(parts)}"
    savings = savings_of(document)
    return told if savings is None else f"{told}. {savings.text}"


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
