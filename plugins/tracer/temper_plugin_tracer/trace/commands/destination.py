"""Where a trace is copied to after its recording: a file, or standard output."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from temper_core import InputError, MachineError
from temper_core.console import print_bytes
from temper_plugin_tracer.trace.commands import partial_file

STANDARD_OUTPUT = Path("-")
Write = Callable[[bytes], object]


def refuse_unusable(out: Path, output: str) -> None:
    """Raise InputError if no trace can be copied to *out* beside a result in the format *output*.

    Asked before a recording, so that none is made in vain.
    """
    if out != STANDARD_OUTPUT:
        partial_file.refuse_unwritable(out)
        return
    if output == "json":
        raise InputError("--out - prints the trace, so that a document of --output has no place")
    print_bytes(b"")  # raises for a terminal


@contextmanager
def opened(out: Path) -> Iterator[Write]:
    """Give the function that writes to *out*. Raises as ``written_whole`` and ``print_bytes``."""
    if out == STANDARD_OUTPUT:
        yield print_bytes
        return
    with partial_file.written_whole(out) as file:
        yield file.write


def arrival(out: Path) -> str:
    """Return the news that the trace has been copied to *out*."""
    return "the trace is printed" if out == STANDARD_OUTPUT else f"the trace is in {out}"


@contextmanager
def still_kept(capture: str, fetching: str) -> Iterator[None]:
    """Add to a failure of the block that the agent keeps the trace, and the command *fetching*."""
    kept = f"the agent keeps the trace {capture}, and this fetches it: {fetching}"
    try:
        yield
    except InputError as error:
        raise InputError(f"{error}; {kept}") from error
    except MachineError as error:
        raise MachineError(f"{error}; {kept}") from error
