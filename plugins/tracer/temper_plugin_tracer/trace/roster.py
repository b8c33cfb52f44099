"""What a trace says beside events: threads, the machine, and how it was captured."""

from collections.abc import Mapping

from attrs import field, frozen

__all__ = ["CaptureFacts", "TracedMachine", "TracedThread"]


@frozen
class TracedThread:
    """A thread of a trace. Names that the trace does not know are empty."""

    tid: int
    tgid: int = 0
    name: str = ""
    process: str = ""
    pod: str = ""
    group: str = ""
    tier: str = ""
    layer: str = ""


@frozen
class TracedMachine:
    """The machine of a trace: its CPUs, and the core of each CPU."""

    utsname: tuple[str, ...] = ()
    cpus: int = 0
    cores: Mapping[int, int] = field(factory=dict)


@frozen
class CaptureFacts:
    """How a trace was captured."""

    losses: Mapping[int, int] = field(factory=dict)
    planned: Mapping[str, tuple[int, ...]] = field(factory=dict)
