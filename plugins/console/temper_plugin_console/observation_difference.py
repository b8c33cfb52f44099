"""What has changed from one observation to another. Pure.

Numbers that are never the same twice (CPU time, pressure) count from a threshold on. Threads are
compared as far as both observations list them: each lists only the busiest.
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
    """From which difference on a number counts: CPUs, and a ratio of pressure."""

    cpus: float = 0.1
    pressure: float = 0.05


@frozen
class ValueChange:
    """One value that is another now."""

    what: str
    before: Value
    after: Value


@frozen
class ChangedItem:
    """Something that both observations tell of, and what is different about it."""

    name: str
    changes: tuple[ValueChange, ...]


@frozen
class ObservationDifference:
    """Everything that is different. Names where something arrived or left."""

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
    """Compare two observations. Whatever is not in them, or of another type, is not compared."""
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
    """The rows of two observations by the same key."""

    before: Mapping[Key, Row]
    after: Mapping[Key, Row]

    def arrived(self, name: Callable[[Key, Row], str]) -> tuple[str, ...]:
        return tuple(name(key, row) for key, row in self.after.items() if key not in self.before)

    def left(self, name: Callable[[Key, Row], str]) -> tuple[str, ...]:
        return tuple(name(key, row) for key, row in self.before.items() if key not in self.after)

    def changed(
        self, name: Callable[[Key, Row], str], changes: Callable[[Row, Row], Iterable[ValueChange]]
    ) -> tuple[ChangedItem, ...]:
        found = (
            ChangedItem(name(key, row), tuple(changes(self.before[key], row)))
            for key, row in self.after.items()
            if key in self.before
        )
        return tuple(each for each in found if each.changes)


def _both(before: Row, after: Row, part: str, key: Callable[[Row], Key | None]) -> _Both:
    found: list[dict[Key, Row]] = []
    for document in (before, after):
        keyed = ((key(row), row) for row in rows(document, part))
        found.append({own: row for own, row in keyed if own is not None})
    return _Both(*found)


def _first(key: Key, _: Row) -> str:
    return str(key[0])


def _thread_key(row: Row) -> Key | None:
    """Tell a thread. A number that another process has now is another thread."""
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
        told = [text(table(document, part), key) for document in (before, after)]
        if all(told):  # an older agent says nothing of it
            yield from _texts(name, *told)
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
    places = [("node", table(table(each, "pressure"), "node")) for each in (before, after)]
    yield from _resource_changes("node", places[0][1], places[1][1], least.pressure)
    pods = [table(table(each, "pressure"), "pods") for each in (before, after)]
    for pod in pods[1]:
        if pod in pods[0]:
            yield from _resource_changes(
                pod, table(pods[0], pod), table(pods[1], pod), least.pressure
            )


def _resource_changes(subject: str, before: Row, after: Row, least: float) -> Iterator[ChangedItem]:
    """Compare the 10 s averages. Those of longer times follow them."""
    found: list[ValueChange] = []
    for resource in after:
        for kind in ("some", "full"):
            lines = [table(table(each, resource), kind) for each in (before, after)]
            found += _numbers(f"{resource} {kind}", lines[0], lines[1], "avg10", least)
    if found:
        yield ChangedItem(subject, tuple(found))


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
