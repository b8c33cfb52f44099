"""One enforcing agent per node: a lock that such an agent holds for its life.

Each of two such agents would take the other's engine for a foreign scheduler, at best. An agent
that can run no engine holds the lock only while it changes files that an enforcing one may use.
The lock is the kernel's (flock), so the kernel releases it when an agent is killed. The file that
remains is only a note.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

import structlog

from temper_core.directory_tree import make_directories
from temper_core.errors import MachineError
from temper_core.forked_children import close_in_children
from temper_core.scheduler.host.kernel import SchedExt
from temper_core.scheduler.host.roots import Roots, read_line
from temper_core.settings.models import OF_ITS_OWN, Settings

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

LOCK_FILE = "agent.lock"
ATTEMPTS = 10
LOOK_S = 0.005
"""Longer than another process holds the lock only to see whether it is held."""


class AnotherAgentError(MachineError):
    """Another agent that may enforce runs on this node."""


def may_enforce(settings: Settings, roots: Roots) -> bool:
    """Return whether an agent with *settings* can run an engine on this kernel.

    A kernel gains or loses sched_ext only by a boot.
    """
    return settings.scheduler.enforce and SchedExt(roots.sched_ext).is_supported


def lock_for_life(settings: Settings, roots: Roots) -> AbstractContextManager[object]:
    """Return the context an agent runs in: the node's lock if it may enforce, else nothing."""
    return agent_lock(roots.node) if may_enforce(settings, roots) else nullcontext()


def is_beside_agent(settings: Settings, roots: Roots) -> bool:
    """Whether this agent can run no engine, and another one that may enforce runs on this node."""
    if may_enforce(settings, roots):
        return False
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(roots.node / LOCK_FILE, flags)
    except OSError:
        return False
    try:
        return is_held(descriptor)
    finally:
        os.close(descriptor)


def is_held(descriptor: int) -> bool:
    """Whether another process holds the lock of an open file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def exclusive_access(settings: Settings, roots: Roots) -> Iterator[bool]:
    """Keep other enforcing agents off the node meanwhile. Yield whether none runs.

    Only running agents use this: one that may enforce holds the lock already.
    """
    with ExitStack() as stack:
        is_alone = True
        if not may_enforce(settings, roots):
            try:
                is_alone = stack.enter_context(agent_lock(roots.node))
            except MachineError:  # another agent, or no regular file in the lock's place
                is_alone = False
        yield is_alone


@contextmanager
def agent_lock(directory: Path) -> Iterator[bool]:
    """Hold the node's lock in *directory*. Yield whether it could be taken.

    Raises AnotherAgentError if another agent holds it, MachineError if another kind of file has
    its name. If the directory cannot be written, no engine can be started either (preflight
    reports that): such an agent only observes, without the lock. The file is removed at the end,
    and the directory if this call made it.
    """
    path = directory / LOCK_FILE
    had_directory = directory.exists()
    try:
        lock = close_in_children(os.fdopen(_locked(path), "wb", buffering=0))
    except AnotherAgentError:
        raise
    except OSError as error:
        log.warning("agent_lock_not_taken", file=str(path), problem=error.strerror)
        yield False
        return
    owner = os.getpid()
    try:
        yield True
    finally:
        if os.getpid() == owner:  # a forked child that ends leaves the lock to its agent
            _give_up(lock, path, had_directory=had_directory)


def _give_up(lock: IO[bytes], path: Path, *, had_directory: bool) -> None:
    """Remove the lock's file, and its directory if nothing else needs that. Release the lock."""
    # Unlinked while it is locked, so that no process can lock a file that is then removed.
    with suppress(OSError):  # it is missing, or the file system is read-only by now
        path.unlink()
    lock.close()
    if not had_directory:
        with suppress(OSError):  # the directory has other files by now
            path.parent.rmdir()


def _locked(path: Path) -> int:
    make_directories(path.parent, 0o700)
    for _ in range(ATTEMPTS):
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            time.sleep(LOOK_S)
            continue
        if _is_at(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            return descriptor
        os.close(descriptor)  # the previous holder removed the file between the two calls
    raise AnotherAgentError(
        f"another agent that may enforce runs on this node ({_holder(path)}holds {path}); "
        f"stop it, or start this one with --observe-only and {OF_ITS_OWN}"
    )


def _opened(path: Path) -> int:
    """Open the lock file. Raise MachineError if the entry is no regular file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
            raise _no_file(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_file(path)
    return descriptor


def _no_file(path: Path) -> MachineError:
    return MachineError(
        f"{path}: is not a regular file, so it cannot be the node's lock; remove it"
    )


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    pid = read_line(path, limit=32) or ""
    return f"process {pid} " if pid.isdigit() else ""
