"""The changes from one observation to another. Pure.

CPU time and pressure always differ, so that they count only above a threshold. An observation lists
only its busiest threads. Those that both list are compared.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from temper_core.observed import (
    Row,
    count,
    cpu_list,
    is_thread,
    number,
    pod_key,
    rows,
    table,
    text,
    whole_numbers,
)

Value = str | float | None
Key = tuple[object, ...]


@frozen
class Thresholds:
    """The least difference that counts: in CPUs, and as a ratio of pressure."""

    cpus: float = 0.1
    pressure: float = 0.05


@frozen
class ValueChange:
    """One value that differs."""

    what: str
    before: Value
    after: Value


@frozen
class ChangedItem:
    """An item in both observations, with the values that differ."""

    name: str
    changes: tuple[ValueChange, ...]


@frozen
class ObservationDifference:
    """All differences. Added and removed items are given by name."""

    node: tuple[ValueChange, ...] = ()
    layers_added: tuple[str, ...] = ()
    layers_removed: tuple[str, ...] = ()
    layers: tuple[ChangedItem, ...] = ()
    pods_arrived: tuple[str, ...] = ()
    pods_left: tuple[str, ...] = ()
    pods: tuple[ChangedItem, ...] = ()
    threads: tuple[ChangedItem, ...] = ()
    violations_arrived: tuple[str, ...] = ()
    violations_cleared: tuple[str, ...] = ()
    pressure: tuple[ChangedItem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is different."""
        return self == ObservationDifference()


def difference(before: Row, after: Row, least: Thresholds) -> ObservationDifference:
    """Compare two observations. Keys that are missing or of another type are skipped."""
    layers = _both(before, after, "layers", lambda row: (text(row, "name"),))
    pods = _both(before, after, "pods", lambda row: (pod_key(row),))
    threads = _both(before, after, "threads", _thread_key)
    violations = _both(before, after, "violations", _violation_key)
    return ObservationDifference(
        node=tuple(_node_changes(before, after)),
        layers_added=layers.arrived(_first),
        layers_removed=layers.left(_first),
        layers=layers.changed(_first, lambda a, b: _layer_changes(a, b, least)),
        pods_arrived=pods.arrived(_first),
        pods_left=pods.left(_first),
        pods=pods.changed(_first, lambda a, b: _pod_changes(a, b, least)),
        threads=threads.changed(_thread_name, _thread_changes),
        violations_arrived=violations.arrived(_violation_name),
        violations_cleared=violations.left(_violation_name),
        pressure=tuple(_pressure_changes(before, after, least)),
    )


@frozen
class _Both:
    """The rows of one list in two observations, by the same key."""

    before: Mapping[Key, Row]
    after: Mapping[Key, Row]

    def arrived(self, name: Callable[[Key, Row], str]) -> tuple[str, ...]:
        return tuple(name(key, row) for key, row in self.after.items() if key not in self.before)

    def left(self, name: Callable[[Key, Row], str]) -> tuple[str, ...]:
        return tuple(name(key, row) for key, row in self.before.items() if key not in self.after)

    def changed(
        self, name: Callable[[Key, Row], str], changes: Callable[[Row, Row], Iterable[ValueChange]]
    ) -> tuple[ChangedItem, ...]:
        items = (
            ChangedItem(name(key, row), tuple(changes(self.before[key], row)))
            for key, row in self.after.items()
            if key in self.before
        )
        return tuple(item for item in items if item.changes)


def _both(before: Row, after: Row, part: str, key: Callable[[Row], Key | None]) -> _Both:
    by_key: list[dict[Key, Row]] = []
    for document in (before, after):
        keyed = ((key(row), row) for row in rows(document, part))
        by_key.append({identity: row for identity, row in keyed if identity is not None})
    return _Both(*by_key)


def _first(key: Key, _: Row) -> str:
    return str(key[0])


def _thread_key(row: Row) -> Key | None:
    """Return a thread's identity. The same tid in another process is another thread."""
    if not is_thread(row):
        return None
    return (count(row, "tid"), count(row, "tgid"), text(row, "process"))


def _thread_name(key: Key, row: Row) -> str:
    pod = pod_key(row)
    return f"{text(row, 'comm')} ({key[0]})" + (f" of {pod}" if pod else "")


def _violation_key(row: Row) -> Key:
    return (text(row, "invariant"), text(row, "subject"))


def _violation_name(_: Key, row: Row) -> str:
    return f"{text(row, 'invariant')} {text(row, 'subject')}: {text(row, 'message')}"


def _node_changes(before: Row, after: Row) -> Iterator[ValueChange]:
    for key in ("node", "mode", "reason", "engine"):
        yield from _texts(key, text(before, key), text(after, key))
    yield from _values("generation", count(before, "generation"), count(after, "generation"))
    for part, key, name in (("observing", "tier", "observed by"), ("steering", "mode", "steering")):
        modes = [text(table(document, part), key) for document in (before, after)]
        if all(modes):  # an older agent lacks the key
            yield from _texts(name, *modes)
    cpus = [count(table(document, "machine"), "cpus") for document in (before, after)]
    yield from _values("CPUs", *cpus)


def _layer_changes(before: Row, after: Row, least: Thresholds) -> Iterator[ValueChange]:
    for key in ("kind", "tier"):
        yield from _texts(key, text(before, key), text(after, key))
    yield from _texts(
        "cpus",
        cpu_list(whole_numbers(before, "cpus")) or "none",
        cpu_list(whole_numbers(after, "cpus")) or "none",
    )
    yield from _numbers("CPUs used", before, after, "cpus_used", least.cpus)
    yield from _texts("demoted", _yes(before.get("demoted")), _yes(after.get("demoted")))


def _pod_changes(before: Row, after: Row, least: Thresholds) -> Iterator[ValueChange]:
    for key in ("uid", "tier", "profile"):
        yield from _texts(key, text(before, key), text(after, key))
    yield from _numbers("CPUs used", before, after, "cpu_used", least.cpus)


def _thread_changes(before: Row, after: Row) -> Iterator[ValueChange]:
    for key, name in (("layer", "layer"), ("expected_layer", "should be")):
        yield from _texts(name, text(before, key), text(after, key))


def _pressure_changes(before: Row, after: Row, least: Thresholds) -> Iterator[ChangedItem]:
    places = [("node", table(table(document, "pressure"), "node")) for document in (before, after)]
    yield from _resource_changes("node", places[0][1], places[1][1], least.pressure)
    pods = [table(table(document, "pressure"), "pods") for document in (before, after)]
    for pod in pods[1]:
        if pod in pods[0]:
            yield from _resource_changes(
                pod, table(pods[0], pod), table(pods[1], pod), least.pressure
            )


def _resource_changes(subject: str, before: Row, after: Row, least: float) -> Iterator[ChangedItem]:
    """Compare the 10 s averages. The averages of longer times follow them."""
    changes: list[ValueChange] = []
    for resource in after:
        for kind in ("some", "full"):
            lines = [table(table(resources, resource), kind) for resources in (before, after)]
            changes += _numbers(f"{resource} {kind}", lines[0], lines[1], "avg10", least)
    if changes:
        yield ChangedItem(subject, tuple(changes))


def _texts(what: str, before: str, after: str) -> Sequence[ValueChange]:
    return [] if before == after else [ValueChange(what, before, after)]


def _values(what: str, before: int | None, after: int | None) -> Sequence[ValueChange]:
    return [] if before == after else [ValueChange(what, before, after)]


def _numbers(what: str, before: Row, after: Row, key: str, least: float) -> Sequence[ValueChange]:
    old, new = number(before, key), number(after, key)
    if old is None or new is None or abs(new - old) < least or new == old:
        return []
    return [ValueChange(what, old, new)]


def _yes(value: object) -> str:
    return "yes" if value is True else "no"
