"""The facts of the capture and of the node that a trace has beside its events."""

from attrs import frozen

from temper_plugin_tracer.capture.bounds import Bounds
from temper_plugin_tracer.capture.node_reading import NodeNotes
from temper_plugin_tracer.capture.selection import Selection


@frozen
class TraceContext:
    """The facts that a trace has beside its events."""

    id: str
    node: str
    by: str
    backend: str
    selection: Selection
    bounds: Bounds
    cores: tuple[tuple[int, ...], ...]
    notes: NodeNotes
