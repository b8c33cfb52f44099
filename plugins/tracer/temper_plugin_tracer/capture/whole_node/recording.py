"""A capture by Perfetto: its recording, its end at a bound, and its outcome."""

import mmap
import os
from collections.abc import Callable

from attrs import frozen

from temper_core import MachineError
from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.capture.recording import boot_ns
from temper_plugin_tracer.capture.tracefs.instance import TracingInstance
from temper_plugin_tracer.capture.whole_node.content import Content, content_of
from temper_plugin_tracer.capture.whole_node.programs import find_programs
from temper_plugin_tracer.capture.whole_node.session import Session
from temper_plugin_tracer.trace.perfetto.scanning import DamagedError


@frozen
class Whole:
    """A trace of the whole node that lies in its file."""

    seconds: float
    ending: Ending
    content: Content


def record_whole_node(
    bounds: Bounds, descriptor: int, asked_ending: Callable[[], Ending | None]
) -> Whole:
    """Record into the file *descriptor* within *bounds*. Raises MachineError, OSError."""
    programs = find_programs()
    with (
        TracingInstance.make(programs.tracefs) as instance,
        Session(programs, instance) as session,
    ):
        session.start()
        began_ns = boot_ns()
        ending = session.record(bounds, descriptor, asked_ending)
        seconds = min(bounds.seconds, (boot_ns() - began_ns) / 1e9)
    content = _content(descriptor, bounds)
    os.ftruncate(descriptor, content.bytes)
    return Whole(seconds, content.cut_by or ending, content)


def _content(descriptor: int, bounds: Bounds) -> Content:
    """Read the trace. The file is larger: its space was reserved."""
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as data:
        try:
            content = content_of(data, bounds)
        except DamagedError as error:
            raise MachineError(f"perfetto's trace is damaged: {error}") from error
    if not content.bytes:
        raise MachineError("perfetto has recorded nothing")
    return content
