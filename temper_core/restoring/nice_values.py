"""Gives back the nice values of threads that an agent has boosted."""

from pathlib import Path

from attrs import field, frozen

from temper_core.records.restored import Leftover, Restored
from temper_core.steering.nice_record import NiceRecord
from temper_core.steering.niceness import give_back_all

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
        return NiceValues(Restored(_told(len(record.read()))))
    given = give_back_all(record)
    if not given.denied:
        return NiceValues(Restored(_told(given.changed)))
    path = str(record.path)
    left = Leftover(path, DENIED.format(given.denied), is_failure=True)
    return NiceValues(Restored(_told(given.changed), (left,)), frozenset({path}))


def _told(threads: int) -> tuple[str, ...]:
    return (f"nice values of boosted threads: {threads}",) if threads else ()
