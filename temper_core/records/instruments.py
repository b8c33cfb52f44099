"""Instruments: the parts of a plugin that run in the agent, and the context that they get.

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
from temper_core.records.events import Event, EventKind
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.names import NAME
from temper_core.records.plans import LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.profiles import WorkloadProfile
from temper_core.records.restored import Restored
from temper_core.records.snapshots import Snapshot
from temper_core.records.thread_groups import ThreadGroup
from temper_core.records.threads import ThreadIdentity

MIB = 1024 * 1024
LEAST_MEMORY = 32 * MIB
"""Bytes. A bare Python process takes 10 MiB."""
MOST_RESULT_BYTES = 16 * MIB
LONGEST_S = 7 * 24 * 3600.0


class NodeLookup(Protocol):
    """The node as of the last plan. Any thread may call every method."""

    @property
    def plan(self) -> LayerPlan | None:
        """The current plan. None before the first."""
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
        """Return the group of *pod*'s profile that takes *thread*. None without a profile."""
        ...

    def layer_of(self, thread: ThreadIdentity) -> Layer | None:
        """Return the layer that *thread* belongs to."""
        ...


class StateDirectory(Protocol):
    """The instrument's own directory, mode 0700, below the agent's.

    ``temper restore`` and an uninstall remove it. If its files exceed ``limit_bytes`` together,
    the agent removes the oldest, and records the event ``state_trimmed``.
    """

    @property
    def path(self) -> Path:
        """The directory, made on first use. Raises MachineError if it cannot be made."""
        ...

    @property
    def limit_bytes(self) -> int:
        """The bound on all its files together."""
        ...

    def used_bytes(self) -> int:
        """Return the size of all its files together."""
        ...

    def write(self, name: str, content: bytes) -> Path:
        """Replace the file *name* as a whole. Raise MachineError if it does not fit."""
        ...


@frozen
class HelperBounds:
    """The resource bounds of a helper process.

    Attributes:
        memory_bytes: Private memory (``RLIMIT_DATA``): an allocation beyond it fails. The agent
            ends a helper whose resident memory, with its children's, is larger.
        cpu_s: CPU time in seconds (``RLIMIT_CPU``). Beyond it the kernel ends the helper.
        seconds: Wall-clock time. Beyond it the agent ends the helper.
        result_bytes: Size of the result as JSON. The agent holds the result in its own memory.

    """

    memory_bytes: int = field(default=256 * MIB, validator=ge(LEAST_MEMORY))
    cpu_s: int = field(default=600, validator=ge(1))
    seconds: float = field(default=3600.0, validator=[ge(0.1), le(LONGEST_S)])
    result_bytes: int = field(default=MIB, validator=[ge(32), le(MOST_RESULT_BYTES)])


class ValueHolder(Protocol):
    """The holder of values that an instrument changes, such as the devices of a driver.

    A path is a name that a device keeps over reboots. Paths and values are printable ASCII.
    """

    def read(self, path: str) -> str | None:
        """Return a value, None if its device is gone. Raises MachineError if it cannot be read."""
        ...

    def write(self, path: str, value: str) -> None:
        """Set a value. Raises MachineError if that is refused."""
        ...


class HelperProcess(Protocol):
    """A child process that runs a function of the plugin. It never outlives the agent."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def is_running(self) -> bool:
        """Whether it still runs."""
        ...

    def result(self, timeout_s: float = 0.0) -> Any:  # noqa: ANN401 - JSON
        """Return the function's result.

        Raises PluginError if the function raised, was ended or broke a bound. Raises TimeoutError
        if it has not ended within *timeout_s*.
        """
        ...

    def stop(self) -> None:
        """End it. Returns at once, and is safe to call twice."""
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
        """End it. Safe to call twice."""
        ...


class InstrumentContext(Protocol):
    """The agent's interface for an instrument. Any thread may call every method."""

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
        """The instrument's own directory."""
        ...

    def is_beside_agent(self) -> bool:
        """Whether another agent of this host may enforce, and this one can run no engine.

        The other one speaks for the node, so this one writes to nothing that both would write to.
        """
        ...

    def is_safe_mode_requested(self) -> bool:
        """Whether anybody requests safe mode, whatever else keeps the engine from running.

        An instrument that changes something of the node undoes it then. ``Snapshot.status`` names
        only the first of several reasons: on a kernel without sched_ext it never is the request.
        """
        ...

    def request_safe_mode(self, reason: str) -> None:
        """Request safe mode in the instrument's name. It outlasts restarts until released."""
        ...

    def safe_mode_reason(self) -> str:
        """Return the reason of the instrument's own request, which may be older than the agent.

        Empty without a request.
        """
        ...

    def release_safe_mode(self) -> None:
        """Withdraw the request for safe mode, and a request to restore."""
        ...

    def restore(self, reason: str, done: Callable[[Restored], None]) -> None:
        """Request safe mode without storing the request, and restore the host.

        It returns at once. *done* is called after the engine has ended and all that the agent
        keeps on the host is removed, and not beside an agent that may enforce, which restores the
        host itself. The agent writes nothing there until one of the other two methods is called.
        """
        ...

    def charge(self, part: str = "") -> AbstractContextManager[None]:
        """Charge the calling thread's CPU time inside a ``with`` block to the instrument.

        With a *part* the line of the overhead is ``instrument_NAME_PART``. An instrument has at
        most four parts. Further ones are charged without a part. The agent's calls into the
        instrument are charged anyway, so this is for its own threads, and for parts. Raises
        InputError for a part that is not a valid name.
        """
        ...

    def record(self, kind: str, subject: str = "", reason: str = "") -> None:
        """Record an event of a kind that ``OpenInstrument.events`` declares.

        Raises InputError for a kind that is not declared.
        """
        ...

    def events_after(self, number: int = 0) -> tuple[Event, ...]:
        """Return the events of this node that are kept and newer than *number*, oldest first.

        They are the agent's own and those of all instruments. ``Event.number`` of the last one is
        the argument of the next call. Raises InputError if *number* is no number.
        """
        ...

    def helper(
        self,
        entry_point: str,
        argument: Any = None,  # noqa: ANN401 - JSON
        bounds: HelperBounds = ...,
    ) -> HelperProcess:
        """Run ``package.module:function`` of the plugin in a process of its own.

        The function receives *argument* and returns its result, both JSON. Raises InputError for
        an invalid argument or entry point. Raises MachineError if the process cannot be started,
        too many run already, or their memory would exceed the limit of ``[plugin_host]``.
        """
        ...

    def try_profile(self, profile: WorkloadProfile, pods: Sequence[str], seconds: float) -> Trial:
        """Put *profile* in force for *pods* (keys) during *seconds*. Nothing is written to disk.

        Raises InputError for an unknown pod, a pod of another trial, or a profile that the engine
        does not support.
        """
        ...


class OpenInstrument:
    """An open instrument. Each method is optional, and is called only if it is overridden.

    The agent calls every method in the plugin's own thread, with a deadline. A method that hangs,
    or fails three times in a row, is set aside. The others are still called.
    """

    def tell(self, snapshot: Snapshot) -> None:
        """Receive *snapshot*. Called after each observation."""

    def let_go(self) -> None:
        """Undo what only ``tell`` would undo, such as a limit. Called once ``tell`` is set aside.

        ``tell`` is not called any more, and may still hang in the thread that was left behind.
        The other methods are called as before, and ``close`` at the end.
        """

    def section(self, snapshot: Snapshot) -> Mapping[str, Any] | None:  # noqa: ARG002 - for subclasses
        """Return the instrument's addition to *snapshot*, as JSON. None if it has none.

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
        """Return the HTTP endpoints. Called once, right after the opening."""
        return ()

    def metrics(self) -> Iterable[Metric]:
        """Return metric families. Called at every scrape, does no I/O."""
        return ()

    def checks(self) -> Iterable[Check]:
        """Return checks for ``GET /checks`` and ``temper doctor``."""
        return ()

    def events(self) -> Iterable[EventKind]:
        """Return the kinds of events that the instrument records. Called once, at the opening."""
        return ()

    def close(self) -> None:
        """Undo all effects that should not outlive the agent, and release all resources."""


@frozen
class Instrument:
    """A part of a plugin that runs in the agent.

    Attributes:
        name: Its name in sections, overhead, events and logs.
        open: Called before anything is enforced, so its requests take effect from the start.
        section_version: The schema version of its section.
        state_limit_bytes: The bound on its state directory.
        devices: Opens the devices whose values ``DeviceValues`` has recorded, for a restoration.
            It may run beside the open instrument. Raises MachineError if they cannot be reached.

    """

    name: str = field(validator=NAME)
    open: Callable[[InstrumentContext], OpenInstrument]
    section_version: int = field(default=1, validator=ge(1))
    state_limit_bytes: int = field(default=64 * MIB, validator=ge(0))
    devices: Callable[[], AbstractContextManager[ValueHolder]] | None = None
