"""The outcome of the kill switch: what stands on this host, and why it may not be in force."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from attrs import field, frozen

from temper_core.cli.host_file_process import change_file
from temper_core.cli.safe_mode_agents import AgentReport, Requests
from temper_core.errors import DocumentError, TemperError
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.safe_mode.model import FILE_REQUESTER, Request
from temper_core.safe_mode.state_file import StateFile
from temper_core.scheduler.host.agent_lock import LOCK_FILE
from temper_core.scheduler.host.kernel import KernelState, SchedExt
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.host.running_agents import lock_holder

if TYPE_CHECKING:
    from temper_core.settings import Settings

LOOK_S = 0.2
DETACH_S = 15.0
"""Seconds in which an engine has to be gone: more than ``[scheduler] stop_deadline_s``."""

EJECT = "echo S > /proc/sysrq-trigger"


def _usual_settings() -> "Settings":
    from temper_core.settings import Settings, load

    try:
        return load(None).settings
    except DocumentError:
        return Settings()


@frozen
class Host:
    """The host that is switched. *usual* returns the settings of an agent without a file.

    *change_file* changes the host's file.
    """

    roots: Roots = Roots()
    usual: "Callable[[], Settings]" = _usual_settings
    change_file: Callable[..., str] = change_file


@frozen
class SafeModeOutcome:
    """The outcome, and everything that stands now.

    ``requests`` and ``mode`` are those of the settings' agent. ``kept`` has, by file, the requests
    in the files of these and the usual settings that no agent reported. ``failure`` is why the
    settings' agent took no part. ``alarms`` are the reasons why safe mode is not certain.
    ``is_file_silent`` is whether the disk of the host's file hangs, so that no file is read.
    """

    done: str
    requests: Requests = field(factory=dict)
    mode: str = ""
    failure: TemperError | None = None
    agents: tuple[AgentReport, ...] = ()
    kept: Mapping[str, Requests] = field(factory=dict)
    alarms: tuple[str, ...] = ()
    is_file_silent: bool = False

    @property
    def has_requests(self) -> bool:
        """Whether any request stands on this host."""
        others = any(agent.requests for agent in self.agents)
        return bool(self.requests or self.kept) or others


def remembered(settings: "Settings") -> dict[str, Any]:
    """Return the requests that an agent with *settings* would read if it started now."""
    standing = StateFile(Path(settings.safe_mode.state)).read()
    if (request := SafeModeFile(Path(settings.safe_mode.file)).request()) is not None:
        standing[FILE_REQUESTER] = request
    return {name: attrs.asdict(request) for name, request in standing.items()}


def kept_requests(
    outcome: SafeModeOutcome, settings: "Settings", host: Host
) -> Iterator[tuple[str, Requests]]:
    """Yield, by file, the requests that neither the settings' agent nor another one reported."""
    places = [SafeModeFile(Path(settings.safe_mode.file))]
    usual = host.usual().safe_mode
    states = []
    if usual != settings.safe_mode:
        places.append(SafeModeFile(Path(usual.file)))
        states.append(StateFile(Path(usual.state)))
    reported = [outcome.requests, *(agent.requests for agent in outcome.agents)]
    for place in places:
        if (request := place.request()) is not None:
            yield from _unreported(place.path, {FILE_REQUESTER: request}, reported)
    for state in states:
        yield from _unreported(state.path, state.read(), reported)


def _unreported(
    path: Path, requests: Mapping[str, Request], reported: Sequence[Requests]
) -> Iterator[tuple[str, Requests]]:
    tables = {name: attrs.asdict(request) for name, request in requests.items()}
    left = {
        name: table
        for name, table in tables.items()
        if not any(requests.get(name) == table for requests in reported)
    }
    if left:
        yield str(path), left


def alarms_of(outcome: SafeModeOutcome, roots: Roots) -> Iterator[str]:
    """Yield the reasons why the stock scheduler may not be in force."""
    for agent in outcome.agents:
        if agent.is_deaf:
            yield f"{agent.name} has NOT heard: {agent.problem}{_to_run(agent.remedy)}"
        elif agent.unkept:
            yield (
                f"{agent.name} has heard, but its successor may not know of it: {agent.unkept}; "
                "when that is over you can run: temper safe-mode on"
            )
    yield from _unasked(outcome, roots)
    yield from _unseen(outcome, roots)
    state = _once_detached(SchedExt(roots.sched_ext))
    if state.is_layered:
        yield f"the engine {state.ops} is still attached{_to_run(EJECT)}"


def _unasked(outcome: SafeModeOutcome, roots: Roots) -> Iterator[str]:
    """Yield the agents that may enforce and were not asked, because only one was to be."""
    holder = lock_holder(roots)
    is_one_heard = any(agent.has_heard for agent in outcome.agents)
    for agent in outcome.agents:
        matters = agent.pid == holder or not is_one_heard
        if not agent.is_asked and not agent.requests and matters:
            yield f"{agent.name} was NOT asked{_to_run('temper safe-mode on')}"


def _unseen(outcome: SafeModeOutcome, roots: Roots) -> Iterator[str]:
    holder = lock_holder(roots)
    pids = {agent.pid for agent in outcome.agents if agent.pid or agent.has_heard}
    if holder is None or holder in pids:
        return
    path = roots.node / LOCK_FILE
    who = f"process {holder}" if holder else "a process that is not visible from here"
    remedy = f"kill -KILL {holder}" if holder else EJECT
    yield f"{who} holds {path}, so it may enforce, and has NOT heard{_to_run(remedy)}"


def _once_detached(kernel: SchedExt) -> KernelState:
    """Wait until no scx_layered is attached. Return the kernel's state."""
    deadline = time.monotonic() + DETACH_S
    while (state := kernel.read()).is_layered and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return state


def _to_run(remedy: str) -> str:
    return f"; run: {remedy}" if remedy else ""
