"""Values outside of Temper that an instrument has changed, and how they are given back.

The record lies in the instrument's state directory and is written before the value. So an
instrument that crashes gives the values back at its next opening, and ``temper restore`` does so
too. Files of the kernel are in ``kernel_values``, devices behind a library in ``device_values``.
"""

import json
import os
import re
import stat
import threading
from collections.abc import Collection
from pathlib import Path

from attrs import asdict, field, frozen
from attrs.validators import matches_re, max_len

from temper_core import documents
from temper_core.errors import DocumentError, MachineError
from temper_core.records.instruments import StateDirectory, ValueHolder
from temper_core.records.restored import Leftover, Restored

MOST_VALUES = 64
LARGEST_VALUE_BYTES = 256
LARGEST_RECORD_BYTES = 64 * 1024
NOT_GIVEN_BACK = "the values in it are not given back"
LET_GO = "the values were let go, and none is changed any more"
CHANGED_SINCE = "another process has changed it since, so it stays"


@frozen
class ChangedValue:
    """A value before the change. ``path`` is that of a file, or the name of a device's value.

    ``now`` is the value as it was read back after the change, None until that has happened: also
    while a second change is under way.
    """

    path: str = field(validator=matches_re(r"[ -~]{1,401}"))
    before: str = field(validator=matches_re(rf"[ -~]{{1,{LARGEST_VALUE_BYTES}}}"))
    now: str | None = None


@frozen
class ValueRecord:
    """The record of an instrument."""

    values: tuple[ChangedValue, ...] = field(default=(), validator=max_len(MOST_VALUES))


@frozen
class RecordFile:
    """The file of a record: its name, and a regular expression of the paths that it may hold."""

    name: str
    paths: str


class ChangedValues:
    """The values of *holder* that an instrument changes, in *record* of its *state* directory.

    Only one thread may use it. Another one may call ``let_go``.
    """

    def __init__(self, state: StateDirectory, record: RecordFile, holder: ValueHolder) -> None:
        self._state = state
        self._file = record
        self._holder = holder
        self._is_let_go = False
        self._has_old_record = False
        self._writing = threading.Lock()  # never held while the record is written
        self._values: dict[str, ChangedValue] = {}

    @property
    def recorded(self) -> tuple[str, ...]:
        """The paths of the values that are to be given back."""
        return tuple(self._values)

    def value_before(self, path: str) -> str | None:
        """Return the value before the first change. None without a change."""
        value = self._values.get(path)
        return None if value is None else value.before

    def take_over(self) -> Restored:
        """Give back what an earlier process of the instrument has not. Call it at the opening.

        Raises MachineError if the record cannot be read.
        """
        self.recall()
        return self.give_back_all()

    def recall(self) -> None:
        """Read what an earlier process has recorded, and give nothing back yet.

        Raises MachineError if the record cannot be read.
        """
        recorded = read_record(self._state.path, self._file)
        self._values = {value.path: value for value in recorded}

    def set(self, path: str, value: str) -> str:
        """Set the value of *path*, and return what is read afterwards.

        The value before the first change is the one that is given back. Raises MachineError if the
        value or the record cannot be written. The value is the former one then.
        """
        known = self._values.get(path)
        before = known.before if known else self._read(path)
        # After a kill before the second record, any value of the file may be this one.
        self._record(ChangedValue(path, before))
        try:
            self._write(path, value)
            now = self._read(path)
            # A restoration that has begun meanwhile forbids this one.
            self._record(ChangedValue(path, before, now))
        except MachineError:
            self._holder.write(path, before)
            raise
        return now

    def give_back_one(self, path: str) -> bool:
        """Give back the value of *path*. Return False if another process has changed it since.

        Raises MachineError if it cannot be written. The record keeps it then.
        """
        value = self._values.get(path)
        if value is None:
            return True
        is_back = _give_back(value, self._holder)
        self._keep([each for each in self._values.values() if each is not value])
        return is_back

    def give_back_unrecorded(self, path: str) -> bool:
        """Give back the value of *path* as ``give_back_one`` does, and leave the record as it is.

        So it waits for no disk. ``renew_record`` then writes the record.
        """
        value = self._values.get(path)
        if value is None:
            return True
        is_back = _give_back(value, self._holder)
        self._values = {name: each for name, each in self._values.items() if name != path}
        self._has_old_record = True
        return is_back

    def renew_record(self) -> None:
        """Write the record if it may have other values than those that are to be given back.

        Raises MachineError if it cannot be written.
        """
        if self._has_old_record:
            self._keep(tuple(self._values.values()))

    def give_back_all(self) -> Restored:
        """Give back every value that can be given back. The record keeps the others."""
        restored, kept = give_back_each(tuple(self._values.values()), self._holder)
        try:
            self._keep(kept)
        except MachineError:
            # A restoration removes the record, and a value that is back is never written again.
            self._values = {value.path: value for value in kept}
        return restored

    def let_go(self) -> Restored:
        """Give back every value that can be given back, and let none be changed any more.

        It waits for no disk, and leaves the record as it is. So it works while another thread
        hangs in ``set``. ``give_back_all`` then writes the record.
        """
        with self._writing:
            self._is_let_go = True
            restored, kept = give_back_each(tuple(self._values.values()), self._holder)
            self._values = {value.path: value for value in kept}
        return restored

    def _write(self, path: str, value: str) -> None:
        with self._writing:
            if self._is_let_go:
                raise MachineError(f"{path}: {LET_GO}")
            self._holder.write(path, value)

    def _read(self, path: str) -> str:
        value = self._holder.read(path)
        if value is None:
            raise MachineError(f"{path}: is gone")
        return value

    def _record(self, value: ChangedValue) -> None:
        if value.path not in self._values and len(self._values) >= MOST_VALUES:
            raise MachineError(f"{value.path}: {MOST_VALUES} values are changed already")
        self._keep([*(each for each in self._values.values() if each.path != value.path), value])

    def _keep(self, values: Collection[ChangedValue]) -> None:
        document = {"values": [asdict(value) for value in values]}
        self._has_old_record = True  # a write that is given up may still end
        self._state.write(self._file.name, json.dumps(document).encode())
        self._has_old_record = False
        self._values = {value.path: value for value in values}


def read_record(
    directory: Path, record: RecordFile, descriptor: int | None = None
) -> tuple[ChangedValue, ...]:
    """Return the values of *record* in *directory*. Raise MachineError if it is damaged.

    *descriptor* is that directory opened, if its path may lead elsewhere meanwhile.
    """
    path = directory / record.name
    try:
        place = path if descriptor is None else Path(record.name)
        file = open_regular(place, os.O_RDONLY, descriptor)
        with os.fdopen(file, "rb") as stream:
            text = documents.read_stream(
                stream, source=str(path), largest_bytes=LARGEST_RECORD_BYTES
            )
        raw = documents.parse_json(text, source=str(path))
        values = documents.fit(raw, ValueRecord, source=str(path)).values
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}; {NOT_GIVEN_BACK}") from error
    except DocumentError as error:
        raise MachineError(f"{error.lines[0]}; {NOT_GIVEN_BACK}") from error
    for value in values:
        if not re.fullmatch(record.paths, value.path):
            reason = f"{path}: {value.path!r} must match {record.paths}"
            raise MachineError(f"{reason}; {NOT_GIVEN_BACK}")
    return values


def open_regular(path: Path, flags: int, directory: int | None = None) -> int:
    """Open a file that is neither a link nor a pipe. Raise OSError or MachineError otherwise."""
    usual = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags | usual, dir_fd=directory)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise MachineError(f"{path}: is not a regular file")


def give_back_each(
    values: Collection[ChangedValue], holder: ValueHolder
) -> tuple[Restored, list[ChangedValue]]:
    """Give back *values*. Return what became of them, and those that could not be given back."""
    removed: list[str] = []
    left: list[Leftover] = []
    kept = []
    for value in values:
        try:
            if _give_back(value, holder):
                removed.append(told(value))
            else:
                left.append(Leftover(value.path, CHANGED_SINCE, is_kept=True))
        except MachineError as error:
            left.append(Leftover(value.path, str(error), is_failure=True))
            kept.append(value)
    return Restored(tuple(removed), tuple(left)), kept


def told(value: ChangedValue) -> str:
    """Return the line of a restoration about a value that is back."""
    return f"{value.path}: {value.before} again"


def not_given_back(directory: Path, record: RecordFile, why: str) -> Restored:
    """Return the result where the record itself is the obstacle."""
    return Restored(left=(Leftover(str(directory / record.name), why, is_failure=True),))


def _give_back(value: ChangedValue, holder: ValueHolder) -> bool:
    """Set the former value. Return False if another process has changed it since.

    A value that is gone, such as a file after a reboot with another kernel, is not given back.
    """
    current = holder.read(value.path)
    if current is None or current == value.before:
        return True
    if value.now is not None and current != value.now:
        return False
    holder.write(value.path, value.before)
    return True
