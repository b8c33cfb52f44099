"""Values of the kernel's files that an instrument has changed, and how they are given back.

``temper restore`` gives them back without the plugin.
"""

import os
from pathlib import Path

from temper_core.errors import MachineError
from temper_core.records.instruments import StateDirectory
from temper_core.records.restored import Restored
from temper_core.restoring.changed_values import (
    LARGEST_VALUE_BYTES,
    ChangedValues,
    RecordFile,
    give_back_each,
    not_given_back,
    open_regular,
    read_record,
    told,
)

RECORD = RecordFile("kernel-values.json", r"/[ -~]{1,400}")


class KernelFiles:
    """The kernel's files, by their absolute paths."""

    def read(self, path: str) -> str | None:
        """Return the line of a file, None if there is none. Raise MachineError otherwise."""
        return read_value(Path(path)) if Path(path).exists() else None

    def write(self, path: str, value: str) -> None:
        """Write *value* to a file that exists. Raise MachineError if that is refused."""
        write_value(Path(path), value)


class KernelValues:
    """The kernel's files that an instrument changes, recorded in its *state* directory.

    Only one thread may use it. Another one may call ``let_go``.
    """

    def __init__(self, state: StateDirectory) -> None:
        self._values = ChangedValues(state, RECORD, KernelFiles())

    @property
    def changed(self) -> tuple[Path, ...]:
        """The files whose values are to be given back."""
        return tuple(map(Path, self._values.recorded))

    def former(self, path: Path) -> str | None:
        """Return the value that a file had before the first change. None without a change."""
        return self._values.value_before(str(path))

    def take_over(self) -> Restored:
        """Give back what an earlier process of the instrument has not. Call it at the opening.

        Raises MachineError if the record cannot be read.
        """
        return self._values.take_over()

    def change(self, path: Path, value: str) -> str:
        """Write *value* to the file at *path*, and return the content of the file afterwards.

        The value before the first change is the one that is given back. Raises MachineError if the
        file or the record cannot be written. The file has its former value then.
        """
        return self._values.set(str(path), value)

    def give_back(self, path: Path) -> bool:
        """Give back the value of a file. Return False if another process has changed it since.

        Raises MachineError if it cannot be written. The record keeps it then.
        """
        return self._values.give_back_one(str(path))

    def give_back_all(self) -> Restored:
        """Give back every value that can be given back. The record keeps the others."""
        return self._values.give_back_all()

    def let_go(self) -> Restored:
        """Give back every value that can be given back, and let none be changed any more.

        It waits for no disk, and leaves the record as it is. So it works while another thread
        hangs in ``change``. ``give_back_all`` then writes the record.
        """
        return self._values.let_go()


def give_back_values(
    directory: Path, *, is_dry: bool = False, descriptor: int | None = None
) -> Restored:
    """Give back the values of the record in *directory*. With *is_dry* only report them.

    *descriptor* is that directory opened, if its path may lead elsewhere meanwhile.
    """
    try:
        values = read_record(directory, RECORD, descriptor)
    except MachineError as error:
        return not_given_back(directory, RECORD, str(error))
    if is_dry:
        return Restored(tuple(map(told, values)))
    return give_back_each(values, KernelFiles())[0]


def read_value(path: Path) -> str:
    """Return the line of a kernel's file. Raise MachineError if it cannot be read."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
        try:
            return os.read(descriptor, LARGEST_VALUE_BYTES).decode(errors="replace").strip()
        finally:
            os.close(descriptor)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from error


def write_value(path: Path, value: str) -> None:
    """Write *value* to a kernel's file that exists. Raise MachineError if that is refused."""
    try:
        descriptor = open_regular(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from error
