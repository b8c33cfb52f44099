"""A capture by the agent in a pod: begun, waited for, and copied."""

import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import click

from temper_core import MachineError, TemperError
from temper_core.console import Progress, held_interruptions, is_interrupted
from temper_core.observed import number, rows, text
from temper_kube.kubectl import PROGRAM, AgentPod, RemoteCommand
from temper_plugin_tracer.trace.commands.agent_traces import LARGEST_TRACE_BYTES
from temper_plugin_tracer.trace.commands.destination import opened, still_kept
from temper_plugin_tracer.trace.commands.progress_bar import MIB, bar

LOOK_EVERY_S = 0.2

Row = Mapping[str, Any]


def capture(asked: Sequence[tuple[AgentPod, Sequence[str]]], seconds: float) -> list[Row]:
    """Capture by several agents at once. Return the entries of the traces.

    *asked* has agents with options of ``temper trace capture``. An interruption ends the recordings
    and keeps what there is. A second one raises Abort. Raises InputError if an agent refuses,
    MachineError if nothing was captured.
    """
    with held_interruptions(), ExitStack() as begun:
        commands = [
            begun.enter_context(agent.begin("trace", "capture", *words, "--output=json"))
            for agent, words in asked
        ]
        progress = Progress("Ctrl-C ends it and keeps what there is")
        _await([agent for agent, _ in asked], commands, seconds, progress)
        entries = [command.finish() for command in commands]
        progress.end("the capture is over")
    for (agent, _), entry in zip(asked, entries, strict=True):
        if not isinstance(entry, Mapping) or not text(entry, "id"):
            raise MachineError(f"{agent.name} answers with no trace: is its version another?")
    return entries


def fetch(agent: AgentPod, entry: Row, out: Path, shown: Callable[[str], None]) -> int:
    """Copy a finished trace to *out*, which appears when it is whole. Return its size in bytes.

    A copy that breaks off goes on where it ended. Raises InputError if *out* cannot be written,
    MachineError if the agent sends nothing more. Both name the command that fetches the trace.
    """
    size, capture_id = int(number(entry, "bytes") or 0), text(entry, "id")
    if size > LARGEST_TRACE_BYTES:
        raise MachineError(f"{agent.name} has a trace of {size >> 20} MiB: is its version another?")
    words = ("trace", "fetch", capture_id, "--out=-")
    with still_kept(capture_id, f"{_in_shell(agent, words)} > FILE"), opened(out) as write_out:
        offset = received = 0

        def write(piece: bytes) -> None:
            nonlocal received
            write_out(piece)
            received += len(piece)
            if received > size:
                raise MachineError(f"{agent.name} sends more than the {size} bytes of the trace")
            shown(f"fetched {received / MIB:.1f} of {size / MIB:.1f} MiB")

        while offset < size:
            offset += agent.copy((*words, f"--offset={offset}"), write)
        if offset != size:
            raise MachineError(f"the trace {capture_id} has {offset} bytes in place of {size}")
    return size


def _in_shell(agent: AgentPod, words: Sequence[str]) -> str:
    """Return the command for a shell that runs ``temper`` with *words* in the agent's pod."""
    _, *command = agent.kubectl.exec_words(agent.namespace, agent.name, ("temper", *words))
    return shlex.join([PROGRAM, *command])


def _await(
    agents: Iterable[AgentPod],
    commands: Sequence[RemoteCommand],
    seconds: float,
    progress: Progress,
) -> None:
    """Wait for the end of *commands*, and show how long the recordings still take."""
    began, is_ending = time.monotonic(), False
    while any(command.process.poll() is None for command in commands):
        progress.show(bar(time.monotonic() - began, seconds))
        if not is_interrupted(LOOK_EVERY_S):
            continue
        if is_ending:
            raise click.Abort
        is_ending = True
        for agent in agents:
            _end(agent)


def _end(agent: AgentPod) -> None:
    """End the recording of the node. Only one runs at a time, and it is the one waited for."""
    with suppress(TemperError):  # the capture's own end has the reason
        entries = agent.ask("trace", "list", "--output=json")
        for entry in rows({"traces": entries}, "traces"):
            if text(entry, "state") == "recording":
                agent.ask("trace", "delete", text(entry, "id"))
