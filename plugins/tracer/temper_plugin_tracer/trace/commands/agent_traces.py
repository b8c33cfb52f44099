"""The requests of the commands of ``temper trace`` to the agent."""

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from temper_core import InputError, MachineError, ask_agent
from temper_core.observed import number, rows, text
from temper_plugin_tracer.trace.commands.destination import Write, opened
from temper_plugin_tracer.trace.commands.progress_bar import MIB

LARGEST_TRACE_BYTES = 1 << 30
"""Eight times what an agent of this version records."""
Row = Mapping[str, Any]
Settings = Any
"""The agent's settings, as ``temper_core.console.read_settings`` returns them."""
OTHER_VERSION = "is its version another?"


def begin(body: Mapping[str, object], settings: Settings) -> Row:
    """Begin a capture and return its entry. Raises as ``ask_agent``."""
    return _table(ask_agent("/trace", method="POST", body=body, settings=settings), "/trace")


def flight_recorder(
    method: Literal["GET", "POST", "DELETE"],
    settings: Settings,
    *,
    below: str = "",
    body: Mapping[str, object] | None = None,
) -> Row:
    """Ask the flight recorder, and return the agent's answer. Raises as ``ask_agent``."""
    path = f"/flight-recorder{below}"
    return _table(ask_agent(path, method=method, body=body, settings=settings), path)


def entries(settings: Settings) -> tuple[Row, ...]:
    """Return the entries of all captures. Raises as ``ask_agent``."""
    document = _table(ask_agent("/traces", settings=settings), "/traces")
    return tuple(rows(document, "traces"))


def entry(capture: str, settings: Settings) -> Row:
    """Return the entry of one capture. Raise InputError if there is none."""
    for each in entries(settings):
        if text(each, "id") == capture:
            return each
    raise InputError(f"the agent has no trace {capture!r}; see 'temper trace list'")


def delete(capture: str, settings: Settings) -> Row:
    """End a running capture, or delete one that is over. Raises as ``ask_agent``."""
    path = f"/trace/{capture}"
    return _table(ask_agent(path, method="DELETE", settings=settings), path)


def fetch(
    capture: str, out: Path, settings: Settings, shown: Callable[[str], None] = lambda _: None
) -> int:
    """Copy a finished trace to *out*, which appears when it is whole. Return its size.

    Raises as ``ask_agent``, and InputError if *out* cannot be written.
    """
    with opened(out) as write:
        return copy(capture, write, settings, shown)


def copy(
    capture: str,
    write: Write,
    settings: Settings,
    shown: Callable[[str], None] = lambda _: None,
    offset: int = 0,
) -> int:
    """Pass a finished trace to *write*, from byte *offset* on. Return the trace's size in bytes.

    Raises as ``ask_agent``, and MachineError if the size changes or is beyond that of any trace.
    """
    size, content = _part(capture, offset, settings)
    if size > LARGEST_TRACE_BYTES:
        raise MachineError(f"the agent has a trace of {size >> 20} MiB: {OTHER_VERSION}")
    while content:
        offset += len(content)
        if offset > size:
            raise MachineError(f"the agent sends more than the {size} bytes of {capture}")
        write(content)
        shown(f"fetched {offset / MIB:.1f} of {size / MIB:.1f} MiB")
        if offset == size:
            return size
        size_now, content = _part(capture, offset, settings)
        if size_now != size:
            raise MachineError(f"the trace {capture} had {size} bytes, and has {size_now} now")
    if offset != size:
        raise MachineError(f"the trace {capture} ended after {offset} of {size} bytes")
    return size


def _part(capture: str, offset: int, settings: Settings) -> tuple[int, bytes]:
    """Return the size of the whole trace, and the bytes from *offset* on that one answer has."""
    query = {"offset": str(offset)}
    part = _table(ask_agent(f"/trace/{capture}/part", query, settings=settings), "/trace")
    try:
        content = base64.b64decode(text(part, "content"), validate=True)
    except binascii.Error as error:
        raise MachineError(f"the agent's answer is no part of a trace: {error}") from error
    return int(number(part, "bytes") or 0), content


def _table(document: object, path: str) -> Row:
    if not isinstance(document, Mapping):
        raise MachineError(f"the agent's answer to {path} is no object: {OTHER_VERSION}")
    return document
