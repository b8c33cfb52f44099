"""A lamp that is lit while run delays are logged. Its device is a folder here.

A plugin of yours calls the library of its device in ``Board``.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from temper_core import DeviceValues, MachineError, StateDirectory

LAMP = "front/lamp"
LIT = "lit"


class Board:
    """The device: a folder with a file for each lamp. Implements ``ValueHolder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: str) -> str | None:
        """Return the state of a lamp, None if there is no such lamp."""
        try:
            return (self._folder / path).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MachineError(f"{path}: {error.strerror}") from error

    def write(self, path: str, value: str) -> None:
        """Set the state of a lamp."""
        try:
            (self._folder / path).write_text(value, encoding="utf-8")
        except OSError as error:
            raise MachineError(f"{path}: {error.strerror}") from error


class Lamp:
    """The lamp of *folder*, none if that is empty. Its former state is recorded in *state*.

    The state that an agent which crashed has recorded comes back first.
    """

    def __init__(self, state: StateDirectory, folder: str) -> None:
        self._values = DeviceValues(state, Board(Path(folder))) if folder else None
        if self._values is not None:
            self._values.take_over()

    def light(self) -> None:
        """Light the lamp if it is not lit. What is refused is tried again in the next call.

        A full state directory takes no record, for instance.
        """
        if self._values is not None and not self._values.recorded:
            with suppress(MachineError):
                self._values.set(LAMP, LIT)

    def give_back(self) -> None:
        """Set the former state."""
        if self._values is not None:
            self._values.give_back_all()


@contextmanager
def reached_board(folder: str) -> Iterator[Board]:
    """Reach the device for ``temper restore``, which calls it after a crash of the agent."""
    if not folder:
        raise MachineError("lamps of [plugins.run-delay] is not set")
    yield Board(Path(folder))
