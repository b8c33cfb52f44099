"""What a trace says beside its events: its threads, its machine, and the facts of its capture."""

from collections.abc import Mapping

from attrs import field, frozen


@frozen
class TracedThread:
    """A thread of a trace. What is not known is empty."""

    tid: int
    tgid: int
    name: str
    process: str = ""
    pod: str = ""
    group: str = ""
    tier: str = ""
    layer: str = ""


@frozen
class TracedMachine:
    """The machine: sysname, release, version and machine of uname(2), and the core of each CPU."""

    utsname: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    cores: Mapping[int, int] = field(factory=dict)


@frozen
class CaptureFacts:
    """How a trace was captured."""

    node: str
    seconds: float
    backend: str
    selection: str = ""
    asked_by: str = ""
    bounds: Mapping[str, float] = field(factory=dict)
    ended_by: str = ""
    lost: Mapping[int, int] = field(factory=dict)
    planned: Mapping[str, tuple[int, ...]] = field(factory=dict)
