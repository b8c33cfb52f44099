"""Instruments: the parts of a plugin that live in the agent, and what the agent gives them.

An instrument is opened before anything is enforced and closed when the agent has ended the
engine. In between it may observe, answer requests, publish metrics and act through its context.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from attrs import field, frozen
from attrs.validators import ge, le

from temper_core.records.checks import Check
from temper_core.records.contributions import Metric
from temper_core.records.endpoints import Endpoint
from temper_core.records.events import EventKind
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.matching import ThreadIdentity
from temper_core.records.names import NAME
from temper_core.records.plans import LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.profiles import ThreadGroup, WorkloadProfile
from temper_core.records.restored import Restored
from temper_core.records.snapshots import Snapshot

MIB = 1024 * 1024
LEAST_MEMORY = 32 * MIB
"""A bare Python takes 10 MiB."""
MOST_RESULT_BYTES = 16 * MIB
LONGEST_S = 7 * 24 * 3600.0


class NodeLookup(Protocol):
    """The node as of the last plan; any thread may call every method."""

    @property
    def plan(self) -> LayerPlan | None:
        """The plan by which pods are placed now; None before the first."""
        ...

    def pods(self) -> Sequence[Pod]:
        """Return the pods of this node."""
        ...

    def pod(self, key: str) -> Pod | None:
        """Return the pod of that key (``namespace/name``)."""
        ...

    def pod_of_cgroup(self, path: str) -> Pod | None:
        """Return the pod whose cgroup is at, or above, *path* (``a/b/c``)."""
        ...

    def thread_group_of(self, pod: str, thread: ThreadIdentity) -> ThreadGroup | None:
        """Return the group of *pod*'s profile that takes *thread*; None without a profile."""
        ...

    def layer_of(self, thread: ThreadIdentity) -> Layer | None:
        """Return the layer to which *thread* belongs."""
        ...


class StateDirectory(Protocol):
    """A directory of the instrument's own, mode 0700, below the agent's.

    ``temper restore`` and an uninstall remove it. Where its files are larger than ``limit_bytes``
    together, the agent removes the oldest, and records the event ``state_trimmed``.
    """

    @property
    def path(self) -> Path:
        """The directory; made when it is asked for. Raises MachineError where it cannot be."""
        ...

    @property
    def limit_bytes(self) -> int:
        """The bound on all its files together."""
        ...

    def used_bytes(self) -> int:
        """Return the size of all its files together."""
        ...

    def write(self, name: str, content: bytes) -> Path:
        """Replace the file *name* as a whole; raise MachineError where it does not fit."""
        ...


@frozen
class HelperBounds:
    """What a helper process may use.

    Attributes:
        memory_bytes: Private memory (``RLIMIT_DATA``): an allocation beyond it fails. A helper
            whose resident memory, with its children's, is larger is ended.
        cpu_s: CPU time in seconds (``RLIMIT_CPU``); beyond it the kernel ends the helper.
        seconds: Wall-clock time; beyond it the agent ends the helper.
        result_bytes: Size of the result as JSON. The agent holds it, and has little memory.

    """

    memory_bytes: int = field(default=256 * MIB, validator=ge(LEAST_MEMORY))
    cpu_s: int = field(default=600, validator=ge(1))
    seconds: float = field(default=3600.0, validator=[ge(0.1), le(LONGEST_S)])
    result_bytes: int = field(default=MIB, validator=[ge(32), le(MOST_RESULT_BYTES)])


class Helper(Protocol):
    """A child process that runs a function of the plugin; it ends with the agent at the latest."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        ...

    def result(self, timeout_s: float = 0.0) -> Any:  # noqa: ANN401 - JSON
        """Return what the function returned.

        Raises PluginError where it raised, was ended or broke a bound; TimeoutError where it has
        not ended within *timeout_s*.
        """
        ...

    def stop(self) -> None:
        """End it; returns at once, and is safe to call twice."""
        ...


class Trial(Protocol):
    """A profile in force for some pods until it is released, expires, or the agent ends."""

    @property
    def id(self) -> str:
        """Its identifier in ``GET /trials``."""
        ...

    def is_active(self) -> bool:
        """Whether it is still in force."""
        ...

    def release(self) -> None:
        """End it; safe to call twice."""
        ...


class InstrumentContext(Protocol):
    """What an instrument has of the agent; any thread may call every method."""

    @property
    def node(self) -> str:
        """The node's name."""
        ...

    @property
    def machine(self) -> MachineShape:
        """The shape of this machine."""
        ...

    @property
    def lookup(self) -> NodeLookup:
        """Pods, cgroups and thread groups as of the last plan."""
        ...

    @property
    def state(self) -> StateDirectory:
        """A directory of the instrument's own."""
        ...

    def request_safe_mode(self, reason: str) -> None:
        """Ask for safe mode in the instrument's name; stands over restarts until released."""
        ...

    def release_safe_mode(self) -> None:
        """Take back the request for safe mode, and a wish to restore."""
        ...

    def restore(self, reason: str, done: Callable[[Restored], None]) -> None:
        """Ask for safe mode without writing that down, and have the host restored.

        *done* is called once the engine has ended and all that the agent keeps on the host is
        removed; it returns at once. The agent writes nothing there until one of the other two
        methods is called.
        """
        ...

    def charge(self, part: str = "") -> AbstractContextManager[None]:
        """Charge the calling thread's CPU time inside a ``with`` block to the instrument.

        With a *part* the line of the overhead is ``instrument_NAME_PART``; an instrument has at
        most four of them, and further ones count as no part. What the agent calls is charged to
        the instrument anyway, so this is for threads of its own, and for parts. Raises InputError
        for a part that is no name.
        """
        ...

    def record(self, kind: str, subject: str = "", reason: str = "") -> None:
        """Record an event of a kind that ``OpenInstrument.events`` declares.

        Raises InputError for a kind that is not declared.
        """
        ...

    def helper(
        self,
        entry_point: str,
        argument: Any = None,  # noqa: ANN401 - JSON
        bounds: HelperBounds = ...,
    ) -> Helper:
        """Run ``package.module:function`` of the plugin in a process of its own.

        The function is given *argument* and returns its result, both JSON. Raises InputError for
        an argument or an entry point that is none, MachineError where the process cannot be
        started, too many run already, or their memory would be more than ``[plugin_host]`` allows.
        """
        ...

    def try_profile(self, profile: WorkloadProfile, pods: Sequence[str], seconds: float) -> Trial:
        """Have *profile* in force for *pods* (keys) during *seconds*; nothing is written to disk.

        Raises InputError for a pod that is not there, that another trial has, or a profile that
        the engine cannot take.
        """
        ...


class OpenInstrument:
    """An instrument at work; each method is optional, and is called only where it is overridden.

    The agent calls every method in the plugin's own thread, to a deadline. One that fails three
    times in a row, or hangs, is set aside; the others are called on.
    """

    def tell(self, snapshot: Snapshot) -> None:
        """Take note of the last observation; called after each."""

    def section(self, snapshot: Snapshot) -> Mapping[str, Any] | None:  # noqa: ARG002 - for subclasses
        """Return what the instrument adds to *snapshot*, as JSON; None for nothing.

        It is published under the instrument's name in ``sections`` of ``/observe`` and recordings,
        and invariants judge by it: *snapshot* has no violations yet.
        """
        return None

    def defects(self) -> Iterable[str]:
        """Return what keeps the instrument from its work; asked after ``section``, at each look.

        The texts are in ``defects`` of ``/observe``, with the instrument's name.
        """
        return ()

    def endpoints(self) -> Iterable[Endpoint]:
        """Return the HTTP endpoints; asked once, right after the opening."""
        return ()

    def metrics(self) -> Iterable[Metric]:
        """Return metric families; asked at every scrape, does no I/O."""
        return ()

    def checks(self) -> Iterable[Check]:
        """Return checks for ``GET /checks`` and ``temper doctor``."""
        return ()

    def events(self) -> Iterable[EventKind]:
        """Return the kinds of events that the instrument records; asked once, at the opening."""
        return ()

    def close(self) -> None:
        """Undo what should not outlive the agent, and let go of everything."""


@frozen
class Instrument:
    """A part of a plugin that lives in the agent.

    Attributes:
        name: Its name in sections, overhead, events and logs.
        open: Called before anything is enforced; what it asks of its context holds from the start.
        section_version: The schema version of its section.
        state_limit_bytes: The bound on its state directory.

    """

    name: str = field(validator=NAME)
    open: Callable[[InstrumentContext], OpenInstrument]
    section_version: int = field(default=1, validator=ge(1))
    state_limit_bytes: int = field(default=64 * MIB, validator=ge(0))
