"""The sum of the requests of a report's containers, now and by the advice."""

from collections.abc import Iterator

from attrs import frozen

from temper_core.console import Row
from temper_core.observed import number, rows, table, text

GIB = 1024.0**3
PER_UNIT = {"cpu_request_millis": 1000.0, "memory_request_bytes": GIB}


HOURS_OF_MONTH = 730
"""Of a mean month: 365 days of 24 hours, by 12."""
HOUR_S = 3600


@frozen
class Priced:
    """Cores and GiB of memory, with the price of each for an hour."""

    cores: float
    gib: float
    core_hour: float
    gib_hour: float

    @property
    def per_month(self) -> float:
        """The amount, in the currency of the prices."""
        hourly = self.cores * self.core_hour + self.gib * self.gib_hour
        return round(hourly * HOURS_OF_MONTH, 2)

    @property
    def text(self) -> str:
        """The amount for an hour, with its numbers."""
        return (
            f"{self.cores:.2f} cores x {self.core_hour:g} + {self.gib:.2f} GiB x {self.gib_hour:g}"
        )


@frozen
class Savings:
    """The savings of a month if all requests follow the advice, and idle headroom goes.

    Both are estimates: they are real only once there are fewer or smaller nodes. Realized savings
    are never in them. ``requests`` is negative if more is advised. ``headroom`` has the part of
    each machine type that no pod requests, None if that is not known. The two do not overlap, as
    headroom is what is not requested.
    """

    requests: Priced
    headroom: tuple[Priced, ...] | None = None

    @property
    def headroom_per_month(self) -> float | None:
        """The amount of the idle headroom, in the currency of the prices. None if unknown."""
        if self.headroom is None:
            return None
        return round(sum(each.per_month for each in self.headroom), 2)

    @property
    def per_month(self) -> float:
        """The amount of both, in the currency of the prices."""
        return round(self.requests.per_month + (self.headroom_per_month or 0.0), 2)

    @property
    def text(self) -> str:
        """The amount with its numbers."""
        told = f"Identified savings, an estimate: {self.per_month:.2f} a month = "
        by_requests = f"({self.requests.text}) x {HOURS_OF_MONTH} h"
        if self.headroom is None:
            return told + by_requests
        cores, gib = (
            sum(getattr(each, name) for each in self.headroom) for name in ("cores", "gib")
        )
        return (
            f"{told}{self.requests.per_month:.2f} by requests, {by_requests}, and "
            f"{self.headroom_per_month:.2f} by idle headroom, {cores:.2f} cores and {gib:.2f} GiB "
            "that no pod requests"
        )


@frozen
class Realized:
    """The realized savings in a window of *window_s*, as measured. It is no estimate.

    ``reclaimed`` are the core-hours of background work on CPUs that others requested, ``freed``
    those by which the overcommit webhook lowered CPU requests. The two may overlap, so they are
    never added.
    """

    window_s: float
    reclaimed: float
    freed: float
    core_hour: float | None

    @property
    def text(self) -> str:
        """Both numbers, with what they are."""
        parts = (
            f"background work ran {self._told(self.reclaimed)} on CPUs that others requested",
            f"the overcommit webhook freed {self._told(self.freed)} of requests",
        )
        return (
            f"Realized in the last {self.window_s / HOUR_S:g} h, as measured, and part of no "
            f"estimate: {'; '.join(parts)}"
        )

    def _told(self, core_hours: float) -> str:
        hours = f"{core_hours:.2f} core-hours"
        if not self.core_hour or not core_hours:
            return hours
        return f"{hours} ({core_hours * self.core_hour:.2f} at {self.core_hour:g})"


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
    requests = Priced(
        cpu.now - cpu.advice, memory.now - memory.advice, core_hour or 0.0, gib_hour or 0.0
    )
    return Savings(requests, _headroom(document))


def realized_of(document: Row) -> Realized | None:
    """Return what was realized in the window. None if no agent measured it."""
    used = [table(row, "used") for row in rows(document, "containers")]
    if not any("reclaimed_core_s" in row for row in used):
        return None
    reclaimed, freed = (
        sum(number(row, name) or 0.0 for row in used) / HOUR_S
        for name in ("reclaimed_core_s", "freed_core_s")
    )
    core_hour = number(table(document, "prices"), "core_hour")
    return Realized(number(document, "window_s") or 0.0, reclaimed, freed, core_hour)


def _headroom(document: Row) -> tuple[Priced, ...] | None:
    """Return what no pod requests, by machine type. None if it is not known."""
    known = [
        Priced(
            number(row, "idle_cores") or 0.0,
            number(row, "idle_gib") or 0.0,
            number(row, "core_hour") or 0.0,
            number(row, "gib_hour") or 0.0,
        )
        for row in rows(document, "machines")
        if number(row, "idle_cores") is not None
    ]
    return tuple(known) or None


def as_line(document: Row) -> str:
    """Return what is requested in all, and the identified savings, in one line."""
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


def as_lines(document: Row) -> list[str]:
    """Return the line of the totals, those of the prices, and that of what was realized, if any.

    The last is its own line, as it is no part of the totals.
    """
    realized = realized_of(document)
    told = [realized.text] if realized and (realized.reclaimed or realized.freed) else []
    return [as_line(document), *_prices(document), *told]


def _prices(document: Row) -> Iterator[str]:
    """Yield how each machine type is priced, or all cores and GiB without machines."""
    machines = rows(document, "machines")
    prices = table(document, "prices")
    if not machines and (source := text(prices, "source")):
        yield f"{_each(prices)} an hour ({source})"
    for row in machines:
        yield (
            f"{number(row, 'nodes') or 0:.0f} x {text(row, 'type') or 'unknown machine type'} "
            f"({number(row, 'cores') or 0:g} cores, {number(row, 'gib') or 0:.1f} GiB): "
            f"{number(row, 'hour') or 0:g} an hour, {_each(row)} ({text(row, 'source')})"
        )


def _each(row: Row) -> str:
    return f"a core {number(row, 'core_hour') or 0:g}, a GiB {number(row, 'gib_hour') or 0:g}"


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
