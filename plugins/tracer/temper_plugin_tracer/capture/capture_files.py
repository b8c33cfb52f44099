"""The files by which the agent tells the helper process of a capture something."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from attrs import define, field

from temper_core import DiskThread, InstrumentContext, MachineError

Files = Mapping[str, bytes]
"""Their contents by name, in the order of writing."""


@define(eq=False)
class CaptureFiles:
    """Writes files of the state directory. *disk* does all that touches them, for it may hang."""

    context: InstrumentContext
    disk: DiskThread
    is_at_work: bool = field(default=False, init=False)
    _failure: str = field(default="", init=False)

    @property
    def defect(self) -> str:
        """Why what was last begun could not be written. Empty if it was."""
        return str(self.disk.silence or self._failure)

    def write(self, files: Files) -> None:
        """Replace *files* on the calling thread, that of the disk. Raises MachineError."""
        for name, content in files.items():
            self.context.state.write(name, content)

    def begin(self, work: Callable[[], None]) -> None:
        """Have *work* done without waiting. Call it only while nothing ``is_at_work``."""
        self.is_at_work = True
        try:
            self.disk.begin(lambda: self._turn(work))
        except MachineError as error:
            self.is_at_work, self._failure = False, str(error)

    def begin_removal(self, remove: Callable[[], None]) -> None:
        """Have the files of a capture that is over removed, without waiting.

        Without a thread the next agent does it.
        """
        with suppress(MachineError):
            self.disk.begin(lambda: self._remove(remove))

    def _turn(self, work: Callable[[], None]) -> None:
        try:
            work()
        except MachineError as error:
            self._failure = str(error)
        except Exception as error:
            self._failure = f"a note of a capture is not written: {error!r}"
            raise
        else:
            self._failure = ""
        finally:
            self.is_at_work = False

    def _remove(self, remove: Callable[[], None]) -> None:
        remove()
        self._failure = ""
