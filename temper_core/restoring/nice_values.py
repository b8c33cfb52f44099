"""Gives back the nice values of threads that an agent has boosted."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import field, frozen

from temper_core.records.restored import Leftover, Restored
from temper_core.steering.nice_record import FOREIGN, NiceRecord
from temper_core.steering.niceness import GivenBack, give_back_all

DENIED = (
    "names {} threads whose nice value this process may not change; run it with CAP_SYS_NICE in "
    "the host's pid namespace"
)


@frozen
class NiceValues:
    """The restored values. ``kept`` are the records of values that could not be restored."""

    restored: Restored = field(factory=Restored)
    kept: frozenset[str] = frozenset()


def restore_nice_values(directory: Path, *, is_dry: bool = False) -> NiceValues:
    """Undo the record in *directory*. With *is_dry* only report it."""
    record = NiceRecord(directory)
    if is_dry:
        known = _told(len(record.read()))
        return _left(record, known, [FOREIGN] if record.is_foreign else [])
    given = give_back_all(record)
    return _left(record, _told(given.changed), [*_why_left(given)])


def _left(record: NiceRecord, done: tuple[str, ...], reasons: Sequence[str]) -> NiceValues:
    """Return what was *done*. The record stays for each of the *reasons*."""
    path = str(record.path)
    left = tuple(Leftover(path, reason, is_failure=True) for reason in reasons)
    return NiceValues(Restored(done, left), frozenset({path} if left else ()))


def _why_left(given: GivenBack) -> Iterator[str]:
    if given.denied:
        yield DENIED.format(given.denied)
    if given.is_foreign:
        yield FOREIGN


def _told(threads: int) -> tuple[str, ...]:
    return (f"nice values of boosted threads: {threads}",) if threads else ()
