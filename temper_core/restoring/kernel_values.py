"""Values of the kernel's files that an instrument has changed, and how they are given back.

The record lies in the instrument's state directory and is written before the kernel's file. So an
instrument that crashes gives the values back at its next opening, and ``temper restore`` does so
without the plugin.
"""

import json
import os
import stat
from collections.abc import Collection
from pathlib import Path

from attrs import asdict, field, frozen
from attrs.validators import matches_re, max_len

from temper_core import documents
from temper_core.errors import DocumentError, MachineError
from temper_core.records.instruments import StateDirectory
from temper_core.records.restored import Leftover, Restored

RECORD = "kernel-values.json"
MOST_VALUES = 64
LARGEST_VALUE_BYTES = 256
LARGEST_RECORD_BYTES = 64 * 1024
NOT_GIVEN_BACK = "the values in it are not given back"
CHANGED_SINCE = "another process has changed it since, so it stays"


@frozen
class KernelValue:
    """A file of the kernel with its value before the change.

    ``now`` is the value as it was read back after the change, None until that has happened: also
    while a second change is under way.
    """

    path: str = field(validator=matches_re(r"/[ -~]{1,400}"))
    before: str = field(validator=matches_re(rf"[ -~]{{1,{LARGEST_VALUE_BYTES}}}"))
    now: str | None = None


@frozen
class ValueRecord:
    """The record of an instrument."""

    values: tuple[KernelValue, ...] = field(default=(), validator=max_len(MOST_VALUES))


class KernelValues:
    """The kernel's files that an instrument changes, recorded in its *state* directory.

    Only one thread may use it.
    """

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._values: dict[str, KernelValue] = {}

    @property
    def changed(self) -> tuple[Path, ...]:
        """The files whose values are to be given back."""
        return tuple(map(Path, self._values))

    def former(self, path: Path) -> str | None:
        """Return the value that a file had before the first change. None without a change."""
        value = self._values.get(str(path))
        return None if value is None else value.before

    def take_over(self) -> Restored:
        """Give back what an earlier process of the instrument has not. Call it at the opening.

        Raises MachineError if the record cannot be read.
        """
        self._values = {value.path: value for value in read_record(self._state.path)}
        return self.give_back_all()

    def change(self, path: Path, value: str) -> str:
        """Write *value* to the file at *path*, and return what the file says afterwards.

        The value before the first change is the one that is given back. Raises MachineError if the
        file or the record cannot be written. The file has its former value then.
        """
        known = self._values.get(str(path))
        before = known.before if known else read_value(path)
        # After a kill before the second record, any value of the file may be this one.
        self._record(KernelValue(str(path), before))
        try:
            write_value(path, value)
            now = read_value(path)
            # A restoration that has begun meanwhile forbids this one.
            self._record(KernelValue(str(path), before, now))
        except MachineError:
            write_value(path, before)
            raise
        return now

    def give_back(self, path: Path) -> bool:
        """Give back the value of a file. Return False if another process has changed it since.

        Raises MachineError if it cannot be written. The record keeps it then.
        """
        value = self._values.get(str(path))
        if value is None:
            return True
        is_back = _give_back(value)
        self._keep([each for each in self._values.values() if each is not value])
        return is_back

    def give_back_all(self) -> Restored:
        """Give back every value that can be given back. The record keeps the others."""
        restored, kept = _give_back_each(tuple(self._values.values()))
        try:
            self._keep(kept)
        except MachineError:
            # A restoration removes the record, and a value that is back is never written again.
            self._values = {value.path: value for value in kept}
        return restored

    def _record(self, value: KernelValue) -> None:
        if value.path not in self._values and len(self._values) >= MOST_VALUES:
            raise MachineError(f"{value.path}: {MOST_VALUES} values are changed already")
        self._keep([*(each for each in self._values.values() if each.path != value.path), value])

    def _keep(self, values: Collection[KernelValue]) -> None:
        document = {"values": [asdict(value) for value in values]}
        self._state.write(RECORD, json.dumps(document).encode())
        self._values = {value.path: value for value in values}


def give_back_values(
    directory: Path, *, is_dry: bool = False, descriptor: int | None = None
) -> Restored:
    """Give back the values of the record in *directory*. With *is_dry* only report them.

    *descriptor* is that directory opened, if its path may lead elsewhere meanwhile.
    """
    try:
        values = read_record(directory, descriptor)
    except MachineError as error:
        return Restored(left=(Leftover(str(directory / RECORD), str(error), is_failure=True),))
    if is_dry:
        return Restored(tuple(map(_told, values)))
    return _give_back_each(values)[0]


def read_record(directory: Path, descriptor: int | None = None) -> tuple[KernelValue, ...]:
    """Return the values of the record in *directory*. Raise MachineError if it is damaged.

    *descriptor* is as that of ``give_back_values``.
    """
    path = directory / RECORD
    try:
        file = _opened(path if descriptor is None else Path(RECORD), os.O_RDONLY, descriptor)
        with os.fdopen(file, "rb") as stream:
            text = documents.read_stream(
                stream, source=str(path), largest_bytes=LARGEST_RECORD_BYTES
            )
        raw = documents.parse_json(text, source=str(path))
        return documents.fit(raw, ValueRecord, source=str(path)).values
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}; {NOT_GIVEN_BACK}") from error
    except DocumentError as error:
        raise MachineError(f"{error.lines[0]}; {NOT_GIVEN_BACK}") from error


def read_value(path: Path) -> str:
    """Return the line of a kernel's file. Raise MachineError if it cannot be read."""
    try:
        descriptor = _opened(path, os.O_RDONLY)
        try:
            return os.read(descriptor, LARGEST_VALUE_BYTES).decode(errors="replace").strip()
        finally:
            os.close(descriptor)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from error


def write_value(path: Path, value: str) -> None:
    """Write *value* to a kernel's file that exists. Raise MachineError if that is refused."""
    try:
        descriptor = _opened(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from error


def _opened(path: Path, flags: int, directory: int | None = None) -> int:
    usual = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags | usual, dir_fd=directory)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise MachineError(f"{path}: is not a regular file")


def _give_back_each(
    values: Collection[KernelValue],
) -> tuple[Restored, list[KernelValue]]:
    """Give back *values*. Return what became of them, and those that could not be given back."""
    removed: list[str] = []
    left: list[Leftover] = []
    kept = []
    for value in values:
        try:
            if _give_back(value):
                removed.append(_told(value))
            else:
                left.append(Leftover(value.path, CHANGED_SINCE, is_kept=True))
        except MachineError as error:
            left.append(Leftover(value.path, str(error), is_failure=True))
            kept.append(value)
    return Restored(tuple(removed), tuple(left)), kept


def _give_back(value: KernelValue) -> bool:
    """Write the former value. Return False if another process has changed the file since.

    A file that is gone, as after a reboot with another kernel, has nothing to give back.
    """
    path = Path(value.path)
    if not path.exists():
        return True
    current = read_value(path)
    if current == value.before:
        return True
    if value.now is not None and current != value.now:
        return False
    write_value(path, value.before)
    return True


def _told(value: KernelValue) -> str:
    return f"{value.path}: {value.before} again"
