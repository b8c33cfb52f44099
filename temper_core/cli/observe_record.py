"""``temper observe --record FILE``: a node's observations in one file, one look at a time."""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
from attrs import define, frozen

from temper_core.console import FiniteRange, Progress, held_interruptions, is_interrupted

if TYPE_CHECKING:
    from temper_core.rehearsal.local_node import LocalNode
    from temper_core.rehearsal.writer import RecordingWriter
    from temper_core.settings import Settings

MEGABYTE = 1024 * 1024
LEAST_BYTES = 64 * 1024
FIRST_WINDOW_S = 1.0
"""The first window without an agent, in seconds: short, so that the file soon has a look."""
LEAST_WINDOW_S = 0.5
"""The last window without an agent may be as short as this, in seconds."""
ASK_AGAIN_S = 0.25
"""Seconds until the next request after an agent had no new observation."""


@frozen
class RecordingOptions:
    """The file of a recording and its bounds; a bound that is None does not apply."""

    file: Path
    seconds: float | None
    looks: int | None
    max_bytes: int


def recording_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a recording. They come as ``record``, ``seconds``, ``looks``, ..."""
    options = (
        click.option(
            "--record",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Record the node into FILE until Ctrl-C; packed if it ends in .gz.",
        ),
        click.option("--seconds", type=FiniteRange(min=0.5), help="Record for this many seconds."),
        click.option("--looks", type=click.IntRange(min=1), help="Record this many looks."),
        click.option(
            "--max-bytes",
            type=click.IntRange(min=LEAST_BYTES),
            default=64 * MEGABYTE,
            show_default=True,
            help="How large the recording may become.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def recording_request(options: Mapping[str, Any]) -> RecordingOptions | None:
    """Return the options of a recording, None without --record.

    Raises UsageError for options that do not go together.
    """
    if options["record"] is None:
        if options["seconds"] is not None or options["looks"] is not None:
            raise click.UsageError("--seconds and --looks are for --record")
        return None
    if options["seconds"] is not None and options["looks"] is not None:
        raise click.UsageError("--seconds and --looks exclude each other")
    return RecordingOptions(
        options["record"], options["seconds"], options["looks"], options["max_bytes"]
    )


def record(recording: RecordingOptions, settings: "Settings") -> None:
    """Record within the bounds of *recording*, from the agent or, if none answers, from the node.

    Ctrl-C and SIGTERM end it with a complete file. Raises InputError if the file cannot be made,
    MachineError if the node cannot be observed.
    """
    from temper_core.errors import MachineError, TemperError
    from temper_core.logs import configure_logs
    from temper_core.rehearsal.writer import RecordingWriter

    configure_logs("warning")
    with held_interruptions(), closing(_snapshots(settings)) as snapshots:
        writer = RecordingWriter(recording.file, recording.max_bytes, source=snapshots.source)
        progress, why, failure = Progress("Ctrl-C ends it"), "", "something failed"
        try:
            why = _looks(snapshots, writer, recording, progress)
        except TemperError as error:
            failure = str(error)
            raise
        finally:
            writer.close(why or failure)
            progress.end(f"{_recorded(writer)}{f'; {why}' if why else ''}")
    if writer.looks == 0:
        raise MachineError("nothing was recorded: the recording ended before its first window")


class _Snapshots(Protocol):
    """The source of a recording. ``look`` returns None if there is no new observation."""

    source: str

    def wait_s(self) -> float: ...
    def look(self) -> dict[str, Any] | None: ...
    def close(self) -> None: ...


def _snapshots(settings: "Settings") -> _Snapshots:
    from temper_core.client import NoAgentError
    from temper_core.errors import TemperError

    try:
        return _AgentSnapshots(settings, _asked(settings))
    except NoAgentError:
        why = "no agent answers"
    except TemperError as error:  # this user may not ask it, or it is of another version
        why = str(error)
    from temper_core.rehearsal.local_node import LocalNode

    click.echo(f"temper: {why}; looking at the node by itself", err=True)
    return _OwnSnapshots(LocalNode(settings))


@define(eq=False)
class _AgentSnapshots:
    """Asks an agent for its last observation, at the agent's own period."""

    settings: "Settings"
    _next: dict[str, Any] | None
    _last_at: float = 0.0
    _due: float = 0.0
    source: str = "agent"

    def wait_s(self) -> float:
        return max(0.0, self._due - time.monotonic())

    def look(self) -> dict[str, Any] | None:
        document, self._next = self._next or _asked(self.settings), None
        look = document["look"]
        if look["at"] == self._last_at or look["window_s"] <= 0:
            self._due = time.monotonic() + ASK_AGAIN_S
            return None
        self._last_at = look["at"]
        period_s = look.get("observing", {}).get("period_s") or look["window_s"]
        self._due = max(look["monotonic_s"] + period_s, time.monotonic() + ASK_AGAIN_S)
        return document

    def close(self) -> None:
        pass  # no connection is kept


@define(eq=False)
class _OwnSnapshots:
    """Observes the node: soon after the baseline, and then at the period of the settings."""

    onlooker: "LocalNode"
    _wait_s: float = FIRST_WINDOW_S
    source: str = "observer"

    def wait_s(self) -> float:
        return self._wait_s

    def look(self) -> dict[str, Any]:
        self._wait_s = self.onlooker.period_s
        return self.onlooker.look()

    def close(self) -> None:
        self.onlooker.close()


def _asked(settings: "Settings") -> dict[str, Any]:
    """Ask the agent for ``/recording``. Raise as ``ask_agent``."""
    from temper_core.client import ask_agent
    from temper_core.errors import MachineError

    document = ask_agent("/recording", settings=settings)
    if not isinstance(document, dict) or not {"head", "plan", "look"} <= document.keys():
        raise MachineError("the agent's answer to /recording is not a look of a recording")
    return document


def _looks(
    snapshots: _Snapshots,
    writer: "RecordingWriter",
    recording: RecordingOptions,
    progress: "Progress",
) -> str:
    """Record looks until a bound is reached. Return which one."""
    ends_at = math.inf if recording.seconds is None else time.monotonic() + recording.seconds
    progress.show(_recorded(writer))
    while True:
        left_s = ends_at - time.monotonic()
        wait_s = min(snapshots.wait_s(), left_s)
        if is_interrupted(wait_s):
            return "it was interrupted"
        if left_s - wait_s <= 0 and wait_s < LEAST_WINDOW_S and writer.looks:
            return f"--seconds {recording.seconds:g} is reached"
        document = snapshots.look()
        full = writer.add(document) if document is not None else ""
        if full:
            return full
        progress.show(_recorded(writer))
        if writer.looks == recording.looks:
            return f"--looks {recording.looks} is reached"


def _recorded(writer: "RecordingWriter") -> str:
    size = writer.size / MEGABYTE
    return f"temper: {writer.path}: {writer.looks} looks, {size:.2f} MiB"
