"""The facts of a trace beside its events: its threads, its machine and its capture."""

from collections.abc import Mapping

from attrs import field, frozen

__all__ = ["MOST_CPUS", "MOST_SIBLINGS", "CaptureFacts", "TracedMachine", "TracedThread"]

MOST_CPUS = 8_192
"""NR_CPUS of the largest kernels (arch/x86/Kconfig). CPU ids are below it."""
MOST_SIBLINGS = 64
"""CPUs of a core, more than any processor has hyperthreads."""


@frozen
class TracedThread:
    """A thread of a trace. Unknown facts are empty.

    Attributes:
        tid: Thread id in the initial pid namespace.
        tgid: Process id. The thread id for a kernel thread, 0 if it is not known.
        name: Name of the thread (comm).
        process: Name of the process.
        pod: Namespace and name of the pod, separated by "/".
        group: Thread group of the workload profile.
        tier: Tier of the pod.
        layer: Layer of the engine.
        is_selected: Whether the capture had a selection, and the thread belonged to it.

    """

    tid: int
    tgid: int
    name: str
    process: str = ""
    pod: str = ""
    group: str = ""
    tier: str = ""
    layer: str = ""
    is_selected: bool = False


@frozen
class TracedMachine:
    """The machine on which a trace was made.

    Attributes:
        utsname: sysname, release, version and machine of uname(2). Empty if it is not known.
        cpus: Ids of the CPUs, ascending.
        cores: Core of each CPU. CPUs of one core are siblings.

    """

    utsname: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    cores: Mapping[int, int] = field(factory=dict)


@frozen
class CaptureFacts:
    """How a trace was captured.

    Attributes:
        node: Name of the node.
        seconds: Duration of the recording.
        backend: Name of the backend.
        selection: What was selected, empty for the whole node.
        asked_by: The requester of the capture.
        bounds: Limits of the capture by name.
        ended_by: What ended the recording.
        lost: Number of lost events by CPU.
        planned: CPUs of each layer by the plan in force.
        tells_throttling: Whether switches say that their thread is throttled.
        cpus: The only CPUs whose events were recorded. Empty if all were.

    """

    node: str
    seconds: float
    backend: str
    selection: str = ""
    asked_by: str = ""
    bounds: Mapping[str, float] = field(factory=dict)
    ended_by: str = ""
    lost: Mapping[int, int] = field(factory=dict)
    planned: Mapping[str, tuple[int, ...]] = field(factory=dict)
    tells_throttling: bool = False
    cpus: tuple[int, ...] = ()
