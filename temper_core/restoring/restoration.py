"""Restoration of the host, by ``temper restore`` without an agent or by a running agent."""

import errno
import fcntl
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import structlog
from attrs import evolve

from temper_core.errors import MachineError
from temper_core.events.event_file import is_written
from temper_core.events.event_keeper import events_path
from temper_core.records.restored import Leftover, Restored
from temper_core.restoring.device_values import Plugins
from temper_core.restoring.host_files import OWN_DIRECTORY, Sparing, agents_files, restore_files
from temper_core.restoring.nice_values import NiceValues, restore_nice_values
from temper_core.restoring.orphans import end_orphan, find_orphans
from temper_core.restoring.tracing_instances import remove_tracing_instances
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.engine_process.leftovers import remove_stale_socket
from temper_core.scheduler.host.agent_lock import (
    LOCK_FILE,
    AnotherAgentError,
    agent_lock,
    exclusive_access,
    is_beside_agent,
)
from temper_core.scheduler.host.roots import Roots, read_line
from temper_core.settings.models import Settings

MOST_TOLD = 20
LOOKS_AFTER_HELPERS = 2.0
"""The looks in which instruments see that their helpers have ended."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Done = Callable[[Restored], None]


class Withdrawable(Protocol):
    """A component with objects in the kernel, which a restoration removes."""

    def withdraw(self) -> None:
        """Remove everything from the kernel, and stay inactive."""
        ...

    def come_back(self) -> None:
        """Become active again."""
        ...


def refuse_beside_agent(settings: Settings, roots: Roots, path: Path | None = None) -> None:
    """Raise AnotherAgentError if an agent runs on this host, MachineError if that is not known.

    An agent that may enforce holds the node's lock. Any other listens on its socket, writes its
    events, or was started with the same settings file *path*, None for none.
    """
    from temper_core.scheduler.host.running_agents import find_agents  # noqa: PLC0415 - not for agents

    for agent in find_agents(roots.proc):
        # The command line is the process's own word, so a stranger's counts for nothing.
        is_ours = agent.user in (0, os.geteuid()) and agent.shares_files()
        if is_ours and _is_same_file(agent.settings_path, path):
            raise _refusal(f"process {agent.pid}")
    lock = roots.node / LOCK_FILE
    try:
        # A pipe of that name must not block.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(lock, flags)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise _not_known(lock, error) from error
    else:
        try:
            _refuse_if_held(descriptor, lock)
        finally:
            os.close(descriptor)
    if settings.server.socket and _listens(Path(settings.server.socket)):
        raise _refusal(f"it listens on {settings.server.socket}")
    _refuse_if_written(events_path(Path(settings.safe_mode.state)))


def _refuse_if_written(events: Path | None) -> None:
    """Refuse while an agent writes the *events*: another socket does not make the state another."""
    if events is None:
        return
    try:
        is_in_use = is_written(events)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            return  # a link or a socket, which no agent has open
        raise _not_known(events, error) from error
    if is_in_use:
        raise _refusal(f"it writes {events}")


def _is_same_file(one: str, other: Path | None) -> bool:
    if not one or other is None:
        return not one and other is None
    with suppress(OSError):
        return Path(one).samefile(other)
    return False


def _refuse_if_held(descriptor: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise MachineError(f"{path}: is not a regular file; remove it")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _refusal(f"process {read_line(path, limit=32)} holds {path}") from error


def _not_known(path: Path, error: OSError) -> MachineError:
    if error.errno == errno.ELOOP:
        return MachineError(f"{path}: is a link, but Temper makes no link of that name; remove it")
    return MachineError(
        f"{path}: {error.strerror}, so whether an agent runs here is not known; run as root"
    )


def restore_without_agent(
    settings: Settings, roots: Roots, *, with_switch: bool = False, is_dry: bool = False
) -> Restored:
    """End orphans and remove Temper's files while no agent can start. With *is_dry* only report.

    Raises MachineError if the lock of the node cannot be taken.
    """
    switch = "" if with_switch else str(Path(settings.safe_mode.file))
    if is_dry:
        orphans = tuple(orphan.text for orphan in find_orphans(roots))
        niced = restore_nice_values(roots.run, is_dry=True).restored.removed
        traced = remove_tracing_instances(roots.proc, is_dry=True)
        files = restore_files(settings, roots, Sparing(switch=switch), is_dry=True)
        removed = (*orphans, *niced, *traced.removed, *files.removed)
        return Restored(removed, (*traced.left, *files.left))
    traced = remove_tracing_instances(roots.proc)
    if not any(directory.is_dir() for directory in (roots.run, roots.node)):
        files = restore_files(settings, roots, Sparing(switch=switch))
        return Restored((*traced.removed, *files.removed), (*traced.left, *files.left))
    lock = str(roots.node / LOCK_FILE)
    with agent_lock(roots.node) as is_held:
        if not is_held:
            raise MachineError(f"{roots.node} cannot be written; run as root")
        ended = _end_orphans(settings, roots)
        nice = restore_nice_values(roots.run)
        remove_stale_socket(roots.stats_socket)
        files = restore_files(settings, roots, Sparing(nice.kept | {lock}, switch))
    directories = _without_directories(roots)
    removed = (*ended.removed, *nice.restored.removed, *traced.removed, *files.removed)
    left = (*ended.left, *nice.restored.left, *traced.left, *files.left)
    return Restored((*removed, *directories), left)


def _without_directories(roots: Roots) -> Iterator[str]:
    """Remove Temper's own directories, empty once the lock is gone. Yield their names."""
    for directory in dict.fromkeys((roots.run, roots.node)):
        with suppress(OSError):  # it has foreign files, or those of the next agent
            if directory.name == OWN_DIRECTORY:
                directory.rmdir()
                yield str(directory)


def _end_orphans(settings: Settings, roots: Roots) -> Restored:
    removed: list[str] = []
    leftovers: list[Leftover] = []
    for orphan in find_orphans(roots):
        if end_orphan(orphan, roots, stop_s=settings.scheduler.stop_deadline_s):
            removed.append(orphan.text)
        else:
            reason = "does not end; `echo S > /proc/sysrq-trigger` ejects its scheduler"
            leftovers.append(Leftover(orphan.text, reason, is_failure=True))
    return Restored(tuple(removed), tuple(leftovers))


def _refusal(evidence: str) -> AnotherAgentError:
    return AnotherAgentError(
        f"an agent runs on this host ({evidence}); stop it first: its files are in use"
    )


def _listens(path: Path) -> bool:
    """Whether a process listens on the socket, even one that accepts no connection any more."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True
        except PermissionError as error:
            raise _not_known(path, error) from error
        except OSError:
            return False
    return True


class Restoration:
    """Restores the host of a running agent on request.

    Any thread may call ``ask`` and ``withdraw``. ``turn`` belongs to the agent's main thread.
    While a request is active, requests for safe mode are kept in memory only.
    """

    def __init__(
        self,
        settings: Settings,
        requests: SafeModeRequests,
        steering: Withdrawable,
        roots: Roots | None = None,
        plugins: Plugins | None = None,
    ) -> None:
        self._settings = settings
        self._requests = requests
        self._steering = steering
        self._plugins = plugins
        self._roots = roots or Roots.of(settings)
        self._lock = threading.Lock()
        self._standing: set[str] = set()
        self._waiting: list[Done] = []
        self._writers = 0
        self._is_away = False
        self._end_helpers: Callable[[], bool] = lambda: False
        self._due = 0.0

    def end_first(self, end_helpers: Callable[[], bool]) -> None:
        """Let a restoration call *end_helpers* first, which returns whether any helper ran.

        The instruments see the end in their next look, and release what they hold.
        """
        self._end_helpers = end_helpers

    def ask(self, name: str, reason: str, done: Done) -> None:
        """Request safe mode and a restoration in *name*'s name. *done* receives the result."""
        with self._lock:
            self._standing.add(name)
            self._waiting.append(done)
        self._requests.add_in_memory(name, reason)

    def withdraw(self, name: str) -> None:
        """Withdraw the request of *name*. Without any, later requests are kept on disk again."""
        with self._lock:
            self._standing.discard(name)
            is_kept = not self._standing
            if is_kept:
                self._waiting.clear()
        if is_kept:
            self._requests.keep_on_disk(is_kept=True)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Delay a restoration during a write. Raise MachineError if one is requested."""
        with self._lock:
            if self._standing:
                raise MachineError("a restoration is active: nothing is written on this host")
            self._writers += 1
        try:
            yield
        finally:
            with self._lock:
                self._writers -= 1

    def turn(self, engines: Collection[int]) -> None:
        """Restore the host if that is requested and *engines* is empty.

        Not before the disk has taken the end of the requests' file: the removal of the others would
        hold the agent's loop where the disk hangs, until the watchdog ends the agent.
        """
        with self._lock:
            is_wanted, waiting = bool(self._standing), tuple(self._waiting)
            if self._writers:  # wait for them: while a restoration is requested, no other begins
                waiting = ()
        if not is_wanted and self._is_away:
            self._is_away = False
            self._steering.come_back()
        if not is_wanted or not waiting or engines or not self._requests.is_off_disk:
            return
        if self._end_helpers():
            self._due = time.monotonic() + LOOKS_AFTER_HELPERS * self._settings.observe.period_s
        if time.monotonic() < self._due:
            return
        is_beside = is_beside_agent(self._settings, self._roots)
        if is_beside and self._is_away:
            return
        self._is_away = True
        self._steering.withdraw()
        with exclusive_access(self._settings, self._roots) as is_alone:
            result = self._restored(is_alone=is_alone)
        if is_alone:
            emptied = tuple(_without_directories(self._roots))
            result = evolve(result, removed=(*result.removed, *emptied))
        if not is_beside:  # the agent beside this one answers for the host, unless it ends first
            self._tell(result, waiting)

    def _restored(self, *, is_alone: bool) -> Restored:
        settings, roots = self._settings, self._roots
        nice = NiceValues()
        if is_alone:
            remove_stale_socket(roots.stats_socket)
            nice = restore_nice_values(roots.run)  # of an agent before, if this one never steered
        pins = Path(settings.scheduler.steering_pin).parent
        directories = frozenset() if is_alone else frozenset({roots.run, roots.node, pins})
        kept = agents_files(settings, roots) | nice.kept
        switch = str(Path(settings.safe_mode.file))
        sparing = Sparing(kept, switch, directories)
        files = restore_files(settings, roots, sparing, plugins=self._plugins)
        traced = remove_tracing_instances(roots.proc)
        removed = (*nice.restored.removed, *traced.removed, *files.removed)
        return Restored(removed, (*nice.restored.left, *traced.left, *files.left))

    def _tell(self, result: Restored, waiting: Collection[Done]) -> None:
        with self._lock:
            self._waiting = [done for done in self._waiting if done not in waiting]
        leftovers = [f"{leftover.path}: {leftover.why}" for leftover in result.left[:MOST_TOLD]]
        log.warning("host_restored", removed=list(result.removed[:MOST_TOLD]), left=leftovers)
        for done in waiting:
            done(result)
