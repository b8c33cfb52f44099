"""A bound on the memory of a command that keeps something of an API server's answers."""

from contextlib import AbstractContextManager

from attrs import field, frozen

from temper_core import InputError, MachineError
from temper_core.console import bounded_memory

NO_THREAD = "can't start new thread"
"""Python's message where there is no memory for the stack of a thread. Each request starts one."""


@frozen
class _Bound:
    _memory: AbstractContextManager[object] = field()

    def __enter__(self) -> None:
        self._memory.__enter__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        is_thread = isinstance(error, RuntimeError) and error.args == (NO_THREAD,)
        try:
            self._memory.__exit__(MemoryError, MemoryError() if is_thread else error, None)
        except InputError as exceeded:
            raise MachineError(str(exceeded)) from error


def bounded_answers() -> AbstractContextManager[None]:
    """Raise MachineError where the block takes more memory than ``bounded_memory`` allows.

    Whoever may create objects chooses how much an API server sends.
    """
    return _Bound(bounded_memory("the API server's answers take"))
